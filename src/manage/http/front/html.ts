/** Text that is already HTML. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Escapes every value except those that are already HTML. Items of a list are joined. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(strings.map((text, index) => text + shown(values[index] ?? '')).join(''))
}

type HtmlValue = string | number | Html | readonly Html[]

/** Renders paragraphs and `code`, the only Markdown in descriptions. */
export function paragraphs(markdown: string): readonly Html[] {
  return markdown.split(/\n{2,}/).map((paragraph) => html`<p>${inline(paragraph)}</p>`)
}

export function inline(markdown: string): readonly Html[] {
  return markdown
    .split('`')
    .map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))
}

function shown(value: HtmlValue): string {
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return String(value).replace(/[&<>"']/g, (char) => ESCAPES[char]!)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** For a page without scripts that loads nothing from other sites and that no site can frame. */
export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
}
