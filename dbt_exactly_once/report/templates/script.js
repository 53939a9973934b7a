document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-copy]');
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    const say = (word) => {
        button.textContent = word;
        setTimeout(() => { button.textContent = 'copy'; }, 1500);
    };
    const select = () => {
        getSelection().selectAllChildren(text);
        say('selected');
    };
    // a page from a file or over plain http may not write to the clipboard
    if (!navigator.clipboard) return select();
    navigator.clipboard.writeText(text.textContent).then(() => say('copied'), select);
});
