import {
  type AgentCard,
  CARD_PURPOSES,
  type Trigger,
  TRIGGERS,
} from '../../classify/known/claims/agent-card.ts'
import { PURPOSES, type Purpose } from '../../classify/known/software.ts'
import { documentUrlProblem } from '../fetch/document-fetch.ts'
import { AgentDocumentFault, type DocumentRules } from '../keys/agent-document.ts'

/**
 * Reads a signature agent card: the members of a client-id metadata document and its `web_bot_auth` object
 * (draft-meunier-webbotauth-registry-04), or the same members at the top level, as in drafts before 03. `null`: the
 * document has none of them, such as a bare key set. An invalid member is named in `ignored`. Throws an
 * AgentDocumentFault if the card as a whole is invalid. `value`: a JSON object of a checked shape.
 */
export function readCard(value: object, url: string, rules: DocumentRules): AgentCard | null {
  const document = value as Members
  if (!MEMBERS.some((member) => document[member] !== undefined)) return null
  if (document['jwks'] !== undefined && document['jwks_uri'] !== undefined)
    throw new AgentDocumentFault('/jwks_uri', 'and jwks exclude each other: give one')
  const ignored: string[] = []
  const own = new Reader(document, '', ignored)
  const extension = document['web_bot_auth']
  const isObject = typeof extension === 'object' && extension !== null && !Array.isArray(extension)
  if (extension !== undefined && !isObject) ignored.push('web_bot_auth must be an object')
  const bot = isObject ? new Reader(extension as Members, 'web_bot_auth.', ignored) : own
  const purpose = bot.texts('purpose')
  return {
    url,
    name: own.text('client_name') ?? own.text('name'),
    homepage: own.link('client_uri', rules),
    contacts: own.texts('contacts'),
    purpose,
    purposes: purposesIn(purpose),
    trigger: bot.trigger(),
    userAgents: bot.texts('expected-user-agent'),
    robotsToken: bot.text('rfc9309-product-token'),
    keepsRobots: bot.compliance(),
    content: bot.text('targeted-content'),
    rateControl: bot.text('rate-control'),
    rateExpectation: bot.text('rate-expectation'),
    knownUrls: bot.texts('known-urls'),
    rangesUrl: bot.link('ips_uri', rules),
    ignored,
  }
}

type Members = Readonly<Record<string, unknown>>

/** Reads members. A value that is not usable counts as absent. */
class Reader {
  readonly #members: Members
  readonly #at: string
  readonly #ignored: string[]

  constructor(members: Members, at: string, ignored: string[]) {
    this.#members = members
    this.#at = at
    this.#ignored = ignored
  }

  text(name: string): string | null {
    const value = this.#members[name] ?? null
    if (value === null || isText(value)) return value
    return this.#ignore(name, SHORT_TEXT)
  }

  /** One text, or several. */
  texts(name: string): readonly string[] {
    const value = this.#members[name] ?? null
    if (value === null) return []
    const texts = Array.isArray(value) ? value : [value]
    if (texts.length <= TEXTS_MAX && texts.every(isText)) return texts as string[]
    return (
      this.#ignore(name, `must be at most ${TEXTS_MAX} texts of 1 to ${TEXT_LENGTH_MAX} characters`) ?? []
    )
  }

  link(name: string, { allowPrivate }: DocumentRules): string | null {
    const value = this.#members[name] ?? null
    if (value === null) return null
    const problem = isText(value) ? documentUrlProblem(value, allowPrivate) : SHORT_TEXT
    return problem === null ? (value as string) : this.#ignore(name, problem)
  }

  trigger(): Trigger | null {
    const value = this.#members['trigger'] ?? null
    if (value === null || TRIGGERS.includes(value as Trigger)) return value as Trigger | null
    return this.#ignore('trigger', `must be one of ${TRIGGERS.join(', ')}`)
  }

  /** Older drafts have a list of the rules that the agent keeps to. */
  compliance(): boolean {
    const value = this.#members['rfc9309-compliance'] ?? false
    if (typeof value === 'boolean') return value
    if (Array.isArray(value)) return value.includes('Disallow')
    return this.#ignore('rfc9309-compliance', 'must be true or false') ?? false
  }

  #ignore(name: string, problem: string): null {
    this.#ignored.push(`${this.#at}${name} ${problem}`)
    return null
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && TEXT.test(value)
}

function purposesIn(words: readonly string[]): readonly Purpose[] {
  const found = words.flatMap((word) => {
    const name = word.trim().toLowerCase()
    return PURPOSES.find((purpose) => purpose === name) ?? CARD_PURPOSES.get(name) ?? []
  })
  return [...new Set(found)]
}

const MEMBERS = [
  'web_bot_auth',
  'client_name',
  'client_uri',
  'contacts',
  'expected-user-agent',
  'purpose',
  'rate-expectation',
  'rfc9309-product-token',
  'trigger',
]
const TEXT_LENGTH_MAX = 300
const TEXT = /^\P{Cc}{1,300}$/u
const SHORT_TEXT = `must be a text of 1 to ${TEXT_LENGTH_MAX} characters, without control characters`
const TEXTS_MAX = 16
