/**
 * For the page at /docs and the sign-in pages. Colours follow the reader's preference for light or dark.
 * Contrast is 4.5 to 1 or more.
 */
export const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --link: light-dark(#0b57d0, #8ab4f8) }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif;
  color: light-dark(#1b1b1f, #e6e6ea); background: light-dark(#fff, #131316) }
a { color: var(--link) }
h1 small { font-weight: normal; font-size: 1rem }
h3 { margin-bottom: 0 }
h3 a { color: inherit; text-decoration: none }
h4 { margin: 1rem 0 .25rem }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px }
.skip { position: absolute; left: -100rem }
.skip:focus { position: static }
input, button { font: inherit; padding: .25rem .5rem }
nav ul { padding-left: 1rem; list-style: none; columns: 16rem }
nav ul ul { columns: auto; margin-bottom: .5rem }
nav li { break-inside: avoid }
article { border-top: 1px solid var(--line); padding: .5rem 0 1.5rem; scroll-margin-top: 1rem }
.call { margin: .25rem 0; overflow-wrap: anywhere }
.call b { font-size: .85em; padding: .1rem .5rem; border-radius: .25rem; color: #fff; background: #455a64 }
.call .get { background: #0b6b3a } .call .post { background: #0b57d0 } .call .delete { background: #a51d24 }
.call .put, .call .patch { background: #7a4b00 }
code, pre { font: .875rem/1.45 ui-monospace, monospace }
code { background: var(--soft); border-radius: .2rem; padding: 0 .2rem }
pre { overflow: auto; max-height: 24rem; padding: .75rem; border: 1px solid var(--line); border-radius: .25rem }
pre code { background: none; padding: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line) }
th[scope=row] { font-weight: normal; white-space: nowrap }
summary { cursor: pointer }
.card { max-width: 28rem; margin: 8vh auto 0; padding: 1.5rem; border: 1px solid var(--line); border-radius: .5rem;
  overflow-wrap: anywhere }
.card .brand { margin-top: 0; color: light-dark(#5a5a66, #a5a5b0) }
.card h1 { font-size: 1.5rem; margin: 0 }
.card h2 { font-size: 1.1rem; margin: 1.5rem 0 0 }
.card .plain { padding: 0; list-style: none }
.card .secret { font-size: 1.15em; overflow-wrap: anywhere }
.card .notice { padding: .5rem .75rem; border-left: .25rem solid light-dark(#0b6b3a, #7fd3a0); background: var(--soft) }
.card label, .card fieldset { display: block; margin: .75rem 0 0 }
.card input:not([type=checkbox]) { display: block; width: 100%; padding: .5rem }
.card .choice { display: flex; gap: .5rem; align-items: baseline }
.card .buttons { display: flex; gap: .5rem; margin: 1.25rem 0 }
.card button { flex: 1; padding: .5rem; cursor: pointer }
.card .button { flex: 1; padding: .5rem; text-align: center; color: inherit; text-decoration: none;
  border: 1px solid var(--line); border-radius: .25rem; background: var(--soft) }
.card .problem { padding: .5rem .75rem; border-left: .25rem solid light-dark(#a51d24, #ff8a8f); background: var(--soft) }
@media print { nav, form, .skip { display: none } details > * { display: block } }
`
