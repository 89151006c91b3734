import * as z from 'zod'
import { readSignatureKey, type SignatureKey } from '../../../identity/signature/signature-key.ts'
import type { GrantFinish, WantedToken, WantedTokens } from '../../../store/people/gnap-grants.ts'
import { validated } from '../../http/validate.ts'
import { SCOPES } from '../../http/access/principal.ts'
import { isHashMethod, wrongInFinishUri } from './finish.ts'
import { GnapError } from './gnap-error.ts'

/** A client's grant request (RFC 9635 §2). */
export interface GrantRequest {
  readonly client: GrantClient
  readonly wanted: WantedTokens
  /** `null`: the client offers no way to ask a person. */
  readonly interact: { readonly finish: Omit<GrantFinish, 'serverNonce'> | null } | null
}

export type GrantClient =
  | { readonly kind: 'key'; readonly key: SignatureKey; readonly display: Display }
  /** A client that identifies itself by its instance id. */
  | { readonly kind: 'instance'; readonly id: string }

export interface Display {
  readonly name: string | null
  readonly uri: string | null
}

/** Unknown members may be extensions and are ignored, except in access rights. */
export function readGrantRequest(body: unknown, publicUrl: string): GrantRequest {
  const { access_token: tokens, client, interact } = validated(REQUEST, body, 'body')
  const isList = Array.isArray(tokens)
  const wanted: WantedTokens = isList
    ? { isList, tokens: labelled(tokens).map((token) => wantedToken(token, publicUrl)) }
    : { isList, tokens: [wantedToken(tokens, publicUrl)] }
  return {
    wanted,
    client: typeof client === 'string' ? { kind: 'instance', id: client } : clientOf(client),
    interact: interact === undefined ? null : { finish: finishOf(interact) },
  }
}

function labelled(tokens: readonly z.output<typeof TOKEN>[]): readonly z.output<typeof TOKEN>[] {
  const labels = new Set(tokens.map(({ label }) => label))
  if (labels.has(undefined) || labels.size < tokens.length)
    throw new GnapError('invalid_request', 'each of several tokens needs a unique label')
  return tokens
}

function wantedToken({ access, label, flags = [] }: z.output<typeof TOKEN>, publicUrl: string): WantedToken {
  if (new Set(flags).size < flags.length) throw new GnapError('invalid_flag', 'duplicate flag')
  const unknown = flags.find((flag) => flag !== 'bearer')
  if (unknown !== undefined) throw new GnapError('invalid_flag', 'unsupported flag: the only flag is bearer')
  const actions = new Set(access.flatMap((right) => actionsIn(right, publicUrl)))
  return {
    label: label ?? null,
    actions: SCOPES.filter((scope) => actions.has(scope)),
    isBearer: flags.includes('bearer'),
  }
}

/** Ignores rights of another type or for another location: this server cannot grant them. */
function actionsIn(right: z.output<typeof RIGHT>, publicUrl: string): readonly string[] {
  if (typeof right === 'string' || right.type !== ACCESS_TYPE) return []
  const unknown = Object.keys(right).find((name) => !RIGHT_MEMBERS.has(name))
  // Reject unknown members: they restrict the right in a way that this server would not enforce.
  if (unknown !== undefined)
    throw new GnapError('invalid_request', `access of type ${ACCESS_TYPE} takes type, actions and locations`)
  const isOurs = (location: string) => location === publicUrl || location.startsWith(`${publicUrl}/`)
  return right.locations === undefined || right.locations.some(isOurs) ? (right.actions ?? []) : []
}

function clientOf({ key, display }: z.output<typeof CLIENT>): GrantClient {
  if (typeof key === 'string') throw new GnapError('invalid_client', 'references to keys are not supported')
  const { proof, jwk } = key
  const { method, ...wanted } = typeof proof === 'string' ? { method: proof } : proof
  if (method !== 'httpsig') throw new GnapError('invalid_client', 'unsupported proof: use httpsig')
  if (jwk === undefined || FORMATS.some((format) => Object.hasOwn(key, format)))
    throw new GnapError('invalid_client', 'a key must be a jwk and no other format')
  const read = readSignatureKey(jwk)
  if (read.kind === 'refused')
    throw new GnapError('invalid_client', `client/key/jwk${read.member && `/${read.member}`} ${read.detail}`)
  if (wanted.alg !== undefined && wanted.alg !== read.key.algorithm)
    throw new GnapError(
      'invalid_client',
      `client/key/proof/alg differs from the algorithm of the key, ${read.key.algorithm}`,
    )
  return {
    kind: 'key',
    key: read.key,
    display: { name: display?.name ?? null, uri: display?.uri ?? null },
  }
}

function finishOf({ start, finish }: z.output<typeof INTERACT>): Omit<GrantFinish, 'serverNonce'> | null {
  if (!start.some((mode) => (typeof mode === 'string' ? mode : mode.mode) === 'redirect'))
    throw new GnapError('invalid_interaction', 'unsupported start mode: use redirect')
  if (finish === undefined) return null
  const { method, uri, nonce, hash_method: hashMethod = 'sha-256' } = finish
  if (method !== 'redirect')
    throw new GnapError('invalid_interaction', 'unsupported finish method: use redirect')
  const wrong = wrongInFinishUri(uri)
  if (wrong !== null) throw new GnapError('invalid_request', `interact/finish/uri ${wrong}`)
  if (!isHashMethod(hashMethod))
    throw new GnapError('invalid_request', 'interact/finish/hash_method is not supported')
  return { uri, nonce, hashMethod }
}

export const ACCESS_TYPE = 'service-api'
const RIGHT_MEMBERS: ReadonlySet<string> = new Set(['type', 'actions', 'locations'])
/** Other key formats (RFC 9635 §7.1). A second format could contain a different key. */
const FORMATS = ['cert', 'cert#S256']

function text(lengthMax: number, lengthMin = 1) {
  return z
    .string()
    .min(lengthMin, 'is empty')
    .max(lengthMax, `is longer than ${lengthMax} characters`)
    .regex(/^\P{Cc}*$/u, 'contains a control character')
}

const RIGHT = z.union([
  text(256),
  z.looseObject({
    type: text(256),
    actions: z.array(text(64)).max(32).optional(),
    locations: z.array(text(2_048)).max(16).optional(),
  }),
])
const TOKEN = z.looseObject({
  access: z.array(RIGHT).min(1, 'is empty').max(32, 'has more than 32 rights'),
  label: text(128).optional(),
  flags: z.array(text(64)).max(16).optional(),
})
const CLIENT = z.looseObject({
  key: z.union([
    text(256),
    z.looseObject({
      proof: z.union([text(64), z.looseObject({ method: text(64), alg: text(64).optional() })]),
      jwk: z.unknown().optional(),
    }),
  ]),
  display: z.looseObject({ name: text(100).optional(), uri: text(2_048).optional() }).optional(),
})
const INTERACT = z.looseObject({
  start: z.array(z.union([text(64), z.looseObject({ mode: text(64) })])).max(16),
  finish: z
    .looseObject({
      method: text(64),
      uri: text(2_048),
      nonce: z.string().regex(/^[ -~]{1,256}$/, 'must have at most 256 printable ASCII characters'),
      hash_method: text(64).optional(),
    })
    .optional(),
})
const REQUEST = z.looseObject({
  access_token: z.union([TOKEN, z.array(TOKEN).min(1, 'is empty').max(10, 'has more than 10 tokens')]),
  client: z.union([text(256), CLIENT]),
  interact: INTERACT.optional(),
})
