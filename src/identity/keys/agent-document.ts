import { DIRECTORY, signerAt } from '../../classify/known/signer-id.ts'
import { Fault } from '../../shared/fault.ts'
import { type AgentKey, readAgentKey } from './agent-key.ts'
import { documentUrlProblem } from '../fetch/document-fetch.ts'

/** An agent's description of itself, or an administrator's description of it. */
export interface AgentDocument {
  /** `null`: the document is a bare key set. */
  readonly id: string | null
  readonly name: string | null
  /** The keys, without duplicates, or their URL. Empty only if the document has redirect URIs. */
  readonly keys: readonly AgentKey[] | { readonly jwksUri: string }
  /** For an app with user consent. The OAuth code validates the URIs when it uses them. */
  readonly redirectUris: readonly string[]
}

/** Rules that differ between production and tests. */
export interface DocumentRules {
  /** `fetch.allow_private_addresses`: allows http, and keys printed in specifications. */
  readonly allowPrivate: boolean
}

/** An invalid value in an agent document. */
export class AgentDocumentFault extends Fault {
  /** JSON pointer to the value (RFC 6901). */
  readonly pointer: string
  readonly detail: string

  constructor(pointer: string, detail: string) {
    super('AGENT_DOCUMENT_INVALID', `${pointer === '' ? 'it' : pointer.slice(1)} ${detail}`)
    this.name = 'AgentDocumentFault'
    this.pointer = pointer
    this.detail = detail
  }
}

/**
 * Reads an Agent Identity Document (the format of a client-id metadata document) or a key set. Ignores
 * unknown members. Throws an AgentDocumentFault. `id`: the required id; `null`: use the id in the document.
 */
export function readAgentDocument(value: unknown, id: string | null, rules: DocumentRules): AgentDocument {
  const document = objectAt(value, '')
  if (id !== null && document['client_id'] === undefined && document['agent_id'] === undefined)
    if (document['keys'] !== undefined)
      return { id: null, name: null, keys: readKeySet(document, rules), redirectUris: [] }
  for (const member of SECRETS)
    if (Object.hasOwn(document, member)) throw fault(`/${member}`, 'must not be in a public document')
  const method = document['token_endpoint_auth_method']
  if (method !== undefined && !METHODS.has(method))
    throw fault('/token_endpoint_auth_method', `must be one of ${[...METHODS].join(', ')}`)
  const [own, name, redirectUris] = [idIn(document, id, rules), nameIn(document), redirectUrisIn(document)]
  return { id: own, name, redirectUris, keys: keysIn(document, rules, redirectUris.length > 0) }
}

/** Reads a JWK Set (RFC 7517). Skips keys of an unknown kind or for another use. */
export function readKeySet(value: unknown, rules: DocumentRules, at = ''): readonly AgentKey[] {
  const { keys } = objectAt(value, at)
  if (!Array.isArray(keys)) throw fault(`${at}/keys`, 'must be a list of keys')
  if (keys.length > KEYS_MAX) throw fault(`${at}/keys`, `has more than ${KEYS_MAX} keys`)
  const found = keys.flatMap((each: unknown, index) => {
    const read = readAgentKey(each, rules.allowPrivate)
    if (read.kind === 'key') return [read.key]
    if (read.isOther) return []
    throw fault(`${at}/keys/${index}${memberIn(read)}`, read.detail)
  })
  if (found.length === 0) throw fault(`${at}/keys`, 'has no key for signatures of a kind that is known here')
  checkDistinct(found, `${at}/keys`)
  return found
}

/** Normalizes an agent id; `refused` says what is wrong with it. */
export function readAgentId(
  text: string,
  { allowPrivate }: DocumentRules,
): { readonly id: string } | { readonly refused: string } {
  const problem = documentUrlProblem(text, allowPrivate)
  if (problem !== null) return { refused: problem }
  const url = new URL(text)
  const id = signerAt(url.href)
  // Two spellings of one id would be two agents.
  if (text !== id && text !== url.href) return { refused: `is not written as it should be: ${id}` }
  return { id }
}

/** The URL of an agent's document: its id, or for a bare origin the Web Bot Auth key directory. */
export function documentPlaceOf(id: string): string {
  return new URL(id).origin === id ? id + DIRECTORY : id
}

function idIn(document: Members, expected: string | null, rules: DocumentRules): string {
  const given = ID_MEMBERS.filter((member) => document[member] !== undefined)
  const [first] = given
  if (first === undefined) throw fault('/client_id', 'is missing')
  const id = expected ?? ownId(document[first], first, rules)
  // An origin may be written with or without its trailing slash, or as the URL of its directory.
  const names = [id, new URL(id).href, documentPlaceOf(id)]
  const other = given.find((member) => !names.includes(document[member] as string))
  if (other !== undefined) throw fault(`/${other}`, 'is not the address of this document')
  return id
}

function ownId(value: unknown, member: string, rules: DocumentRules): string {
  const read =
    typeof value === 'string' ? readAgentId(value, rules) : { refused: 'must be a URL with https://' }
  if ('refused' in read) throw fault(`/${member}`, read.refused)
  return read.id
}

function nameIn(document: Members): string | null {
  const member = document['client_name'] === undefined ? 'name' : 'client_name'
  const name = document[member]
  if (name === undefined) return null
  if (typeof name === 'string' && NAME.test(name)) return name
  throw fault(`/${member}`, 'must have 1 to 100 characters, no control characters')
}

function redirectUrisIn({ redirect_uris: uris = [] }: Members): readonly string[] {
  if (!Array.isArray(uris) || uris.length > REDIRECT_URIS_MAX)
    throw fault('/redirect_uris', `must be a list of ${REDIRECT_URIS_MAX} at most`)
  const wrong = uris.findIndex((uri) => typeof uri !== 'string' || uri.length > REDIRECT_URI_LENGTH_MAX)
  if (wrong !== -1) throw fault(`/redirect_uris/${wrong}`, 'must be a URI')
  return uris as readonly string[]
}

function keysIn(document: Members, rules: DocumentRules, maybeNone: boolean): AgentDocument['keys'] {
  const given = KEY_MEMBERS.filter((member) => document[member] !== undefined)
  if (given.length === 0 && maybeNone) return []
  if (given.length !== 1)
    throw fault(
      given.length === 0 ? '/jwks' : `/${given[1]}`,
      `is one of ${KEY_MEMBERS.join(', ')}: give one`,
    )
  if (given[0] === 'jwks') return readKeySet(document['jwks'], rules, '/jwks')
  if (given[0] === 'jwks_uri') return { jwksUri: keyPlace(document['jwks_uri'], rules) }
  const read = readAgentKey(document['public_key'], rules.allowPrivate)
  if (read.kind === 'key') return [read.key]
  throw fault(`/public_key${memberIn(read)}`, read.detail)
}

function keyPlace(value: unknown, { allowPrivate }: DocumentRules): string {
  const problem = typeof value === 'string' ? documentUrlProblem(value, allowPrivate) : 'must be a URL'
  if (problem !== null) throw fault('/jwks_uri', problem)
  return value as string
}

function checkDistinct(keys: readonly AgentKey[], at: string): void {
  const names = new Set<string>()
  for (const { kid, thumbprint } of keys)
    for (const name of new Set([thumbprint, ...(kid === null ? [] : [kid])])) {
      if (names.has(name)) throw fault(at, 'has two keys of one name (kid, or thumbprint)')
      names.add(name)
    }
}

function objectAt(value: unknown, at: string): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members
  throw fault(at, 'is not an object')
}

function memberIn({ member }: { readonly member: string }): string {
  return member === '' ? '' : `/${member}`
}

function fault(pointer: string, detail: string): AgentDocumentFault {
  return new AgentDocumentFault(pointer, detail)
}

type Members = Readonly<Record<string, unknown>>

const ID_MEMBERS = ['client_id', 'agent_id'] as const
const KEY_MEMBERS = ['jwks', 'jwks_uri', 'public_key'] as const
const SECRETS = ['client_secret', 'client_secret_expires_at', 'private_key']
/** Authentication methods without a shared secret. */
const METHODS: ReadonlySet<unknown> = new Set(['private_key_jwt', 'none'])
const NAME = /^\P{Cc}{1,100}$/u
const KEYS_MAX = 32
const REDIRECT_URIS_MAX = 32
const REDIRECT_URI_LENGTH_MAX = 2_000
