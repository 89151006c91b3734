import { Pattern } from './pattern.ts'
import { hasBody, type Plan } from './plan.ts'

/** An answer as it comes in, checked byte by byte. */
export class Answer {
  status = 0
  headers = new Map<string, readonly string[]>()
  trailers = new Map<string, readonly string[]>()
  /** It has ended as its protocol says that answers end. */
  isWhole = false
  /** The first thing that was not as it has to be. */
  wrong: string | null = null
  bytes = 0
  readonly #plan: Plan
  readonly #pattern: Pattern
  #text = ''

  constructor(plan: Plan) {
    this.#plan = plan
    this.#pattern = new Pattern(`${plan.fault === 'echo' ? 'up' : 'down'} ${plan.id}`)
  }

  /** It is the app's, not one of Gatehouse's own. */
  get isFromApp(): boolean {
    return this.headers.has('x-soak-id')
  }

  /** What Gatehouse says why it is not the app's. */
  get code(): string | null {
    return /"code":"(\w+)"/.exec(this.#text)?.[1] ?? null
  }

  get text(): string {
    return this.#text
  }

  head(status: number, headers: ReadonlyMap<string, readonly string[]>): void {
    this.status = status
    this.headers = new Map(headers)
    const id = this.header('x-soak-id')
    if (id !== null && id !== this.#plan.id) this.#isWrong(`the answer to ${id}`)
  }

  body(bytes: Uint8Array): void {
    this.bytes += bytes.length
    if (!this.isFromApp) this.#text += Buffer.from(bytes).toString('latin1')
    else if (!hasBody(this.#plan)) this.#isWrong('an unexpected body')
    else if (this.bytes > this.#plan.size) this.#isWrong(`${this.bytes} bytes of ${this.#plan.size}`)
    else {
      const fault = this.#pattern.fault(bytes)
      if (fault !== null) this.#isWrong(`${fault}; before ${this.bytes}`)
    }
    if (this.#text.length > OWN_TEXT_MAX) this.#isWrong('an endless answer to no request')
  }

  header(name: string): string | null {
    return this.headers.get(name)?.[0] ?? null
  }

  #isWrong(what: string): void {
    this.wrong ??= what
  }
}

/** As name and value follow each other, in any case. */
export function fieldsOf(raw: readonly string[]): Map<string, readonly string[]> {
  const fields = new Map<string, readonly string[]>()
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    fields.set(name, [...(fields.get(name) ?? []), raw[i + 1]!])
  }
  return fields
}

const OWN_TEXT_MAX = 10_000
