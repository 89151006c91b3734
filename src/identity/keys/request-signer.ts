import { hash } from 'node:crypto'
import { type InnerList, type Item, serializeInnerList, serializeItem, Token } from 'structured-headers'
import { Fault } from '../../shared/fault.ts'
import { ComponentValues, componentOf, type SignedRequest } from '../signature/signature-base.ts'
import { type SigningKey, signBase } from './signing-key.ts'

/** Parameters of a signature to create (RFC 9421). */
export interface WantedSignature {
  readonly label: string
  /** `@authority`, `content-digest`; for a dictionary member `signature-agent;key=sig1`. */
  readonly components: readonly string[]
  readonly createdS: number
  /** `null`: the parameter is left out. */
  readonly expiresS: number | null
  readonly nonce: string | null
  readonly tag: string | null
}

/** Parameters for an agent's signature (Web Bot Auth). */
export interface WantedBotSignature extends Partial<WantedSignature> {
  readonly createdS: number
  readonly expiresS: number | null
  /** The agent id: where its keys are. */
  readonly agent: string
  /** Form of Signature-Agent: a dictionary member, or the bare string of older drafts. */
  readonly form: 'dictionary' | 'string'
}

/**
 * Headers to add to the request, as a flat list of names and values. Throws a Fault if a covered component is
 * missing.
 */
export function signRequest(
  request: SignedRequest,
  wanted: WantedSignature,
  key: SigningKey,
): readonly string[] {
  const { label } = wanted
  const input: InnerList = [wanted.components.map(itemOf), parametersOf(wanted, key)]
  const values = new ComponentValues(request)
  let base = ''
  for (const item of input[0]) {
    const component = componentOf(item)
    const value = component === null ? null : values.of(component)
    if (component === null || value === null)
      throw new Fault('SIGNATURE_COMPONENT', `the request has no ${serializeItem(item)} that could be signed`)
    base += `${component.text}: ${value}\n`
  }
  const parameters = serializeInnerList(input)
  base += `"@signature-params": ${parameters}`
  const bytes = signBase(key, base).toString('base64')
  return ['Signature-Input', `${label}=${parameters}`, 'Signature', `${label}=:${bytes}:`]
}

/** The same for an agent: adds Signature-Agent. */
export function signAsAgent(
  request: SignedRequest,
  wanted: WantedBotSignature,
  key: SigningKey,
): readonly string[] {
  const { agent, form, label = 'sig1', nonce = null, tag = 'web-bot-auth' } = wanted
  // The keys of an origin are in its directory; another URL is the document with the keys.
  const type =
    form === 'string' || new URL(agent).origin === agent ? [] : [['type', new Token('cimd')] as const]
  const text = serializeItem([agent, new Map(type)])
  const own = ['Signature-Agent', form === 'string' ? text : `${label}=${text}`]
  const covered = form === 'string' ? 'signature-agent' : `signature-agent;key=${label}`
  const components = wanted.components ?? ['@authority', covered]
  const signed = { ...request, rawHeaders: [...request.rawHeaders, ...own] }
  return [...own, ...signRequest(signed, { ...wanted, components, label, nonce, tag }, key)]
}

/** Content-Digest (RFC 9530) of a body as sent. */
export function contentDigestOf(body: string | Uint8Array): string {
  return `sha-256=:${hash('sha256', body, 'base64')}:`
}

function itemOf(text: string): Item {
  const [name = '', ...parameters] = text.split(';')
  return [
    name,
    new Map(
      parameters.map((parameter) => {
        const [key = '', ...value] = parameter.split('=')
        return [key, value.length === 0 ? true : value.join('=')]
      }),
    ),
  ]
}

function parametersOf({ createdS, expiresS, nonce, tag }: WantedSignature, key: SigningKey) {
  const parameters = new Map<string, string | number>([['created', createdS]])
  if (expiresS !== null) parameters.set('expires', expiresS)
  if (nonce !== null) parameters.set('nonce', nonce)
  parameters.set('keyid', key.thumbprint)
  parameters.set('alg', key.algorithm)
  if (tag !== null) parameters.set('tag', tag)
  return parameters
}
