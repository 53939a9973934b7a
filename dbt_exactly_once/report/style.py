"""How the page of `exactly-once report` looks: style and the one script, both inline."""

from __future__ import annotations

STYLE = """
:root {
    --paper: #f6f7f9; --card: #ffffff; --ink: #17202a; --quiet: #5c6773; --line: #d5dae0;
    --link: #0b5cad; --good: #17692f;
    /* told apart by readers who see colours differently, and by brightness */
    --new: #0a6ebd; --not_checked: #74b9e8; --duplicate: #8a919a; --in_doubt: #c44700;
}
@media (prefers-color-scheme: dark) {
    :root {
        --paper: #10151b; --card: #19212a; --ink: #e9eef3; --quiet: #a3afbb; --line: #3a4652;
        --link: #7cc0ff; --good: #6fd08c;
        --new: #4ea3ea; --not_checked: #a9d7f5; --duplicate: #87919c; --in_doubt: #ff8a47;
    }
}
* { box-sizing: border-box; }
/* read from a hand's distance, and from across a room */
html { font-size: clamp(16px, 0.55vw + 9px, 30px); }
body {
    margin: 0; padding: 1rem; background: var(--paper); color: var(--ink);
    font: 1rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
header { margin: 0 auto 1rem; max-width: 110rem; }
h1 { font-size: 1.6rem; margin: 0; }
header p { margin: 0.2rem 0 0; color: var(--quiet); }
main {
    display: grid; gap: 1rem; max-width: 110rem; margin: 0 auto; align-items: start;
    grid-template-columns: repeat(auto-fit, minmax(min(100%, 36rem), 1fr));
}
section {
    background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem;
    padding: 0.9rem 1rem; min-width: 0;
}
section.wide { grid-column: 1 / -1; }
h2 { font-size: 1.15rem; margin: 0 0 0.7rem; }
h3 { font-size: 1rem; margin: 0.8rem 0 0.4rem; }
.nothing { color: var(--quiet); margin: 0.3rem 0; }
.good { color: var(--good); font-weight: 600; margin: 0.3rem 0; }
.todo { margin: 0; padding-left: 1.2rem; }
.todo li { margin-bottom: 0.6rem; }
.advice { color: var(--quiet); overflow-wrap: anywhere; }
.tiles { display: grid; gap: 0.8rem; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.tile { border-left: 0.4rem solid var(--quiet); padding: 0.1rem 0.7rem; }
.tile.new { border-color: var(--new); }
.tile.not_checked { border-color: var(--not_checked); }
.tile.duplicate { border-color: var(--duplicate); }
.tile.in_doubt { border-color: var(--in_doubt); }
.tile data { display: block; font-size: 1.9rem; font-weight: 650; line-height: 1.2; }
.tile span { color: var(--quiet); font-size: 0.9rem; display: block; }
data { font-variant-numeric: tabular-nums; }
figure { margin: 0 0 0.6rem; }
figure svg { width: 100%; height: auto; display: block; }
.on-narrow { display: none; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; }
th { color: var(--quiet); font-weight: 600; border-bottom: 2px solid var(--line); }
td { border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
.number { text-align: right; }
td.number { white-space: nowrap; }
.scroll { overflow-x: auto; }
td.none { color: var(--quiet); }
details { margin-top: 0.5rem; font-size: 0.88rem; }
td details, li details { margin-top: 0; }
summary { color: var(--link); cursor: pointer; width: fit-content; padding: 0.15rem 0; }
summary:focus-visible, button:focus-visible { outline: 2px solid var(--link); }
.sql { position: relative; }
pre {
    background: var(--paper); border: 1px solid var(--line); border-radius: 0.3rem;
    margin: 0.3rem 0; padding: 0.6rem 4.2rem 0.6rem 0.6rem;
    white-space: pre-wrap; overflow-wrap: anywhere;
}
button {
    position: absolute; top: 0.4rem; right: 0.4rem; font: inherit; color: var(--link);
    background: var(--card); border: 1px solid var(--line); border-radius: 0.3rem;
    padding: 0.2rem 0.6rem; cursor: pointer;
}
@media (max-width: 44rem) {
    body { padding: 0.6rem; }
    .on-wide { display: none; }
    .on-narrow { display: block; }
    .tiles { grid-template-columns: repeat(2, 1fr); }
    /* a row becomes a card: nothing to scroll sideways */
    thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    tr {
        display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem;
        padding: 0.4rem 0;
        border-bottom: 2px solid var(--line);
    }
    td {
        grid-column: 1 / -1; display: block; border: 0; padding: 0.12rem 0;
        overflow-wrap: anywhere;
    }
    td[data-label]::before {
        content: attr(data-label) ' '; color: var(--quiet); font-size: 0.85em; text-align: left;
    }
    td.number {
        grid-column: auto; display: flex; justify-content: space-between; gap: 0.5rem;
        white-space: normal; overflow-wrap: break-word;
    }
    td:first-child { font-weight: 600; }
    td[data-label]:first-child:not(.number)::before { content: none; }
}
@media print { details { display: none; } section { break-inside: avoid; } }
"""

SCRIPT = """
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
"""
