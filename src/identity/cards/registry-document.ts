import { signerAt } from '../../classify/known/signer-id.ts'
import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import { Fault } from '../../shared/fault.ts'
import { shapeProblem } from '../../wire/json-shape.ts'
import { documentUrlProblem } from '../fetch/document-fetch.ts'
import { type DocumentRules, readAgentId } from '../keys/agent-document.ts'
import { readCard } from './card-document.ts'

/** A list of signature agent cards (draft-meunier-webbotauth-registry-04). */
export interface Registry {
  /** The URLs of cards, and of key directories. */
  readonly places: readonly string[]
  /** Cards that stand in the registry itself, by the signer that they describe. */
  readonly inline: ReadonlyMap<string, AgentCard>
  /** Lines that are ignored, and why: `line 7: must be a URL with https://`. */
  readonly ignored: readonly string[]
}

/** Reads the text of a registry. Throws a Fault if it has no usable line. `url`: that of the registry. */
export function readRegistry(text: string, url: string, rules: DocumentRules): Registry {
  const lines = text.split(/\r\n|\r|\n/)
  const places = new Set<string>()
  const inline = new Map<string, AgentCard>()
  const ignored: string[] = []
  for (const [index, line] of lines.entries()) {
    const entry = line.trim()
    if (entry === '' || entry.startsWith('#')) continue
    const problem =
      places.size + inline.size >= ENTRIES_MAX
        ? `is one of more than ${ENTRIES_MAX} cards`
        : /^data:/i.test(entry)
          ? takeInline(entry, url, rules, inline)
          : takePlace(withoutComment(entry), rules, places)
    if (problem !== null && ignored.length < IGNORED_MAX) ignored.push(`line ${index + 1}: it ${problem}`)
  }
  if (places.size + inline.size === 0) throw new Fault('REGISTRY_EMPTY', ignored[0] ?? 'it lists no card')
  return { places: [...places], inline, ignored }
}

/** What is wrong with the entry; `null`: it was taken. */
function takePlace(entry: string, rules: DocumentRules, places: Set<string>): string | null {
  const problem = documentUrlProblem(entry, rules.allowPrivate)
  if (problem === null) places.add(new URL(entry).href)
  return problem
}

function takeInline(
  entry: string,
  url: string,
  rules: DocumentRules,
  inline: Map<string, AgentCard>,
): string | null {
  const value = inlineValue(entry)
  if (value === null) return 'must be a card as data:application/json,{…} with at most 4,000 characters'
  try {
    const card = readCard(value, url, rules)
    const signer = describedSigner(value as Record<string, unknown>, rules)
    if (card === null) return 'is not a signature agent card'
    if (signer === null) return 'is a card without a valid client_id or jwks_uri, so it describes no signer'
    inline.set(signer, card)
    return null
  } catch (error) {
    if (error instanceof Fault) return `is not a valid card: ${error.message}`
    throw error
  }
}

/** The JSON object of a data URL (RFC 2397); `null`: it has none. */
function inlineValue(entry: string): object | null {
  if (entry.length > INLINE_LENGTH_MAX) return null
  const [, base64, data] =
    /^data:application\/(?:[\w.-]+\+)?json(?:;charset=utf-8)?(;base64)?,(.*)$/i.exec(entry) ?? []
  if (data === undefined) return null
  try {
    const text =
      base64 === undefined ? decodeURIComponent(data) : Buffer.from(data, 'base64').toString('utf8')
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject && shapeProblem(value) === null ? value : null
  } catch {
    return null
  }
}

/** The signer that a card describes: its client_id, or the owner of its keys. */
function describedSigner(card: Readonly<Record<string, unknown>>, rules: DocumentRules): string | null {
  for (const member of ['client_id', 'jwks_uri']) {
    const value = card[member]
    const read = typeof value === 'string' ? readAgentId(value, rules) : null
    if (read !== null && 'id' in read) return signerAt(read.id)
  }
  return null
}

/** A URL has no unescaped `#` here, so a comment may follow it. */
function withoutComment(entry: string): string {
  const comment = entry.search(/[ \t]#/)
  return comment === -1 ? entry : entry.slice(0, comment).trimEnd()
}

/** Eight registries fill the cache of fetched cards. */
const ENTRIES_MAX = 250
const INLINE_LENGTH_MAX = 4_000
const IGNORED_MAX = 20
