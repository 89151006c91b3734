import { Fault } from '../../shared/fault.ts'
import { documentUrlProblem } from '../fetch/document-fetch.ts'
import type { DocumentRules } from './agent-document.ts'

/** The part of an issuer's metadata (RFC 8414, OpenID Connect Discovery) that leads to its keys. */
export interface IssuerMetadata {
  readonly issuer: string
  readonly jwksUri: string
}

/** The URL of an issuer's metadata, as the scheme `jwks_uri` of Signature-Key names it. */
export function metadataPlaceOf(issuer: string, name: string): string {
  return issuer + WELL_KNOWN + name
}

/**
 * `null`: the document is not the metadata of an issuer. Throws a Fault if it is the metadata of another issuer than
 * the one at its URL, or if its keys are elsewhere: then others could publish keys in the name of that host.
 */
export function readIssuerMetadata(
  value: unknown,
  url: string,
  { allowPrivate }: DocumentRules,
): IssuerMetadata | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { issuer, jwks_uri: jwksUri, ...rest } = value as Readonly<Record<string, unknown>>
  if (issuer === undefined || OTHER_DOCUMENTS.some((member) => Object.hasOwn(rest, member))) return null
  if (issuer !== issuerAt(url)) throw wrong('its issuer is not the one at this URL')
  if (typeof jwksUri !== 'string') throw wrong('its jwks_uri is missing')
  const problem = documentUrlProblem(jwksUri, allowPrivate)
  if (problem !== null) throw wrong(`its jwks_uri ${problem}`)
  if (new URL(jwksUri).origin !== new URL(url).origin) throw wrong('its jwks_uri is at another host')
  return { issuer: issuer as string, jwksUri }
}

/** `null`: this is not a place for metadata. */
function issuerAt(url: string): string | null {
  const at = url.lastIndexOf(WELL_KNOWN)
  return at === -1 ? null : url.slice(0, at)
}

function wrong(why: string): Fault {
  return new Fault('ISSUER_METADATA_INVALID', why)
}

const WELL_KNOWN = '/.well-known/'
/** Members of documents that describe an agent, or are a key set. */
const OTHER_DOCUMENTS = ['client_id', 'agent_id', 'keys'] as const
