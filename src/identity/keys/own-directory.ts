import { serializeInnerList } from 'structured-headers'
import { CARD } from '../../classify/known/signer-id.ts'
import { documentPlaceOf } from './agent-document.ts'
import { contentDigestOf } from './request-signer.ts'
import { type SigningKey, signBase } from './signing-key.ts'

/** The JSON text of a key directory (draft-meunier-webbotauth-httpsig-protocol). */
export function directoryText(keys: readonly SigningKey[]): string {
  return JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })
}

/** The JSON text of the signature agent card of Gatehouse itself (draft-meunier-webbotauth-registry-04). `agent`: its id. */
export function ownCardText(agent: string): string {
  return JSON.stringify({
    client_id: new URL(agent).origin + CARD,
    client_name: 'Gatehouse',
    jwks_uri: documentPlaceOf(agent),
    web_bot_auth: {
      'rfc9309-compliance': false,
      'targeted-content': 'Webhooks and task callbacks; headers for the app behind this gateway',
      'rate-control': '429',
      'known-urls': [],
    },
  })
}

/**
 * Response headers for this body, such as `directoryText`. Each key signs once, so that another server
 * cannot present the keys as its own. `host`: as requested, with the port unless it is the default.
 */
export function directoryHeaders(
  keys: readonly SigningKey[],
  host: string,
  nowS: number,
  body = directoryText(keys),
): Readonly<Record<string, string>> {
  const digest = contentDigestOf(body)
  const signatures = keys.map((key, index) => {
    const parameters = serializeInnerList([
      [
        ['@authority', new Map([['req', true]])],
        ['content-digest', new Map()],
      ],
      new Map<string, string | number>([
        ['created', nowS],
        ['expires', nowS + LIFE_S],
        ['keyid', key.thumbprint],
        ['alg', key.algorithm],
        ['tag', TAG],
      ]),
    ])
    const covered = `"@authority";req: ${host.toLowerCase()}\n"content-digest": ${digest}`
    const base = `${covered}\n"@signature-params": ${parameters}`
    return { label: `key${index}`, parameters, bytes: signBase(key, base).toString('base64') }
  })
  return {
    'Content-Type': DIRECTORY_TYPE,
    'Cache-Control': `max-age=${FRESH_S}`,
    'Content-Digest': digest,
    'Signature-Input': signatures.map(({ label, parameters }) => `${label}=${parameters}`).join(', '),
    Signature: signatures.map(({ label, bytes }) => `${label}=:${bytes}:`).join(', '),
  }
}

export const DIRECTORY_TYPE = 'application/http-message-signatures-directory+json'
const TAG = 'http-message-signatures-directory'
/** Longer than the cache time, so that no cached copy has an expired signature. */
const LIFE_S = 7_200
const FRESH_S = 3_600
