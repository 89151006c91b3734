import { serializeInnerList } from 'structured-headers'
import { type SigningKey, signBase } from './signing-key.ts'

/** What a key directory is, in JSON (draft-ietf-webbotauth-httpsig-directory). */
export function directoryText(keys: readonly SigningKey[]): string {
  return JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })
}

/**
 * What its answer is signed with, once by each key: nobody else can show them as his own. `host`: as it was asked for,
 * with its port where that is not the usual one.
 */
export function directoryHeaders(
  keys: readonly SigningKey[],
  host: string,
  nowS: number,
): Readonly<Record<string, string>> {
  const signatures = keys.map((key, index) => {
    const parameters = serializeInnerList([
      [['@authority', new Map([['req', true]])]],
      new Map<string, string | number>([
        ...([['created', nowS]] as const),
        ['expires', nowS + LIFE_S],
        ['keyid', key.thumbprint],
        ['alg', key.algorithm],
        ['tag', TAG],
      ]),
    ])
    const base = `"@authority";req: ${host.toLowerCase()}\n"@signature-params": ${parameters}`
    return { label: `key${index}`, parameters, bytes: signBase(key, base).toString('base64') }
  })
  return {
    'Content-Type': DIRECTORY_TYPE,
    'Cache-Control': `max-age=${FRESH_S}`,
    'Signature-Input': signatures.map(({ label, parameters }) => `${label}=${parameters}`).join(', '),
    Signature: signatures.map(({ label, bytes }) => `${label}=:${bytes}:`).join(', '),
  }
}

export const DIRECTORY_TYPE = 'application/http-message-signatures-directory+json'
const TAG = 'http-message-signatures-directory'
/** Longer than it is kept, so that nobody has one that has expired. */
const LIFE_S = 7_200
const FRESH_S = 3_600
