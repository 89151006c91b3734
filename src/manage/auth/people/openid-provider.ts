import type { Configuration, IDToken, ServerMetadata } from 'openid-client'
import type { JSONWebKeySet } from 'jose'
import * as z from 'zod'
import { Fault } from '../../../shared/fault.ts'
import { Documents, DocumentUnusable } from '../../../identity/fetch/document-fetch.ts'
import type { DocumentMetrics } from '../../../identity/fetch/document-metrics.ts'
import { type GuardedFetch, guardedFetch } from '../../../identity/fetch/guarded-fetch.ts'
import { FetchFault } from '../../../identity/fetch/guarded-get.ts'
import type { Secret } from '../../../shared/secret.ts'
import { emailIn, OPENID_SUBJECT } from './make-user.ts'
import { type AssertionSettings, parseKeys } from '../oauth/assertions.ts'
import { accessFor, type RoleAccess, type RoleSettings } from './outside-roles.ts'

export interface OpenidSettings {
  readonly issuer: string
  /** The provider's name for people. */
  readonly name: string
  readonly clientId: string
  /** `null`: PKCE alone. */
  readonly clientSecret: Secret<string> | null
  /** Trusted instead of the system's CAs; PEM. */
  readonly ca: string | null
  readonly allowPrivate: boolean
  /** `null`: administrators decide the access of each user. */
  readonly roles: RoleSettings | null
  /** `null` or absent: identity assertions of this provider are not accepted. */
  readonly assertions?: AssertionSettings | null
}

/** One sign-in at the provider that has begun. */
export interface OpenidFlow {
  readonly state: string
  readonly nonce: string
  /** The PKCE code verifier. */
  readonly verifier: string
  /** The person must have authenticated since then. `null`: at any time. */
  readonly freshSinceMs: number | null
}

/** The person that the provider has authenticated. */
export interface OpenidPerson {
  readonly issuer: string
  readonly subject: string
  /**
   * The address in the form accounts use. `null`: missing, or not verified by the provider. Throws an
   * OpenidFault.
   */
  verifiedEmail(): Promise<string | null>
  /** The access that the roles give. `null`: none of them does. Throws an OpenidFault. */
  access(roles: RoleSettings): Promise<RoleAccess | null>
}

/**
 * `denied`: by the person. `away`: temporarily unavailable. `wrong`: an invalid response. Messages are our
 * own text and never contain a token.
 */
type OpenidReason = 'denied' | 'away' | 'wrong'

export class OpenidFault extends Fault {
  readonly reason: OpenidReason

  constructor(reason: OpenidReason, message: string) {
    super('OPENID_UNUSABLE', message)
    this.name = 'OpenidFault'
    this.reason = reason
  }
}

/**
 * An external OpenID provider that authenticates people (OpenID Connect Core 1.0 §3.1). openid-client
 * implements the protocol; its requests go through our guards.
 */
export class OpenidProvider {
  readonly name: string
  /** Spelled as in the setting. */
  readonly issuer: string
  readonly roles: RoleSettings | null
  readonly #settings: OpenidSettings
  readonly #metadata: Documents<ServerMetadata>
  readonly #keys: Documents<JSONWebKeySet>
  readonly #fetch: GuardedFetch
  readonly #nowMs: () => number
  readonly #stop = new AbortController()
  #made: { readonly metadata: ServerMetadata; readonly configuration: Configuration } | null = null
  #asking = 0

  constructor(settings: OpenidSettings, nowMs: () => number, metrics: DocumentMetrics) {
    const { issuer, name, allowPrivate, ca } = settings
    this.name = name
    this.issuer = issuer
    this.roles = settings.roles
    this.#settings = settings
    this.#nowMs = nowMs
    const parse = (value: unknown) => readMetadata(value, issuer)
    const kind = { name: 'openid', accept: 'application/json', parse } as const
    const fetching = { allowPrivate, nowMs, metrics, ...(ca !== null && { ca }) }
    this.#metadata = new Documents(kind, fetching)
    this.#keys = new Documents(KEYS, fetching)
    const guards = { ca, allowPrivate, timeoutMs: TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX }
    this.#fetch = guardedFetch(guards, this.#stop.signal)
  }

  /** The URL to which the browser is sent to sign in. Throws an OpenidFault. */
  addressFor({ state, nonce, verifier, freshSinceMs }: OpenidFlow, redirectUri: string): Promise<URL> {
    return this.#asked(async (openid, configuration) => {
      const challenge = await openid.calculatePKCECodeChallenge(verifier)
      return openid.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: this.roles?.scope == null ? 'openid email' : `openid email ${this.roles.scope}`,
        state,
        nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...(freshSinceMs !== null && { prompt: 'login', max_age: FRESH_S }),
      })
    })
  }

  /** `cameBack`: the redirect URI with its query. Throws an OpenidFault. */
  personOf(cameBack: URL, { state, nonce, verifier, freshSinceMs }: OpenidFlow): Promise<OpenidPerson> {
    return this.#asked(async (openid, configuration) => {
      const ageS = freshSinceMs === null ? null : Math.ceil((this.#nowMs() - freshSinceMs) / 1000)
      const tokens = await openid.authorizationCodeGrant(configuration, cameBack, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
        ...(ageS !== null && { maxAge: ageS }),
      })
      const claims: IDToken = tokens.claims()!
      const { sub: subject } = claims
      if (!OPENID_SUBJECT.test(subject)) throw new OpenidFault('wrong', 'its ID token has an invalid subject')
      let userInfo: Promise<Readonly<Record<string, unknown>>> | null = null
      /** The claims with this one: those of the ID token if it has it, otherwise those of the UserInfo endpoint. */
      const claimsWith = async (name: string): Promise<Readonly<Record<string, unknown>>> => {
        if (claims[name] !== undefined) return claims
        if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
        userInfo ??= this.#asked(() => openid.fetchUserInfo(configuration, tokens.access_token, subject))
        return userInfo
      }
      return {
        issuer: this.issuer,
        subject,
        verifiedEmail: async () => verifiedEmailIn(await claimsWith('email_verified')),
        access: async (roles) => {
          const found = await claimsWith(roles.claim)
          const value = found[roles.claim]
          if (value === undefined && (isElsewhere(roles.claim, claims) || isElsewhere(roles.claim, found)))
            throw new OpenidFault(
              'wrong',
              `it does not send the claim "${roles.claim}" itself: ${SEND_FEWER}`,
            )
          return accessFor(valuesOf(roles.claim, value), roles)
        },
      }
    })
  }

  /** The keys that identity assertions are signed with. `ageMaxMs`: as in Documents. Throws a DocumentUnusable. */
  async keys(ageMaxMs?: number): Promise<JSONWebKeySet> {
    const url = this.#metadataUrl
    const { jwks_uri } = await this.#metadata.get(url)
    if (jwks_uri === undefined) throw new DocumentUnusable('wrong', url, 'it names no keys (jwks_uri)')
    return this.#keys.get(jwks_uri, ageMaxMs)
  }

  get #metadataUrl(): string {
    return `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  }

  /** Aborts requests in progress. */
  close(): void {
    this.#stop.abort()
    this.#keys.close()
    this.#metadata.close()
  }

  async #asked<Result>(
    work: (openid: Library, configuration: Configuration) => Promise<Result>,
  ): Promise<Result> {
    if (this.#asking >= ASKING_MAX) throw new OpenidFault('away', 'too many requests to it are in progress')
    this.#asking++
    try {
      // Imported on first use.
      const openid = await import('openid-client')
      return await work(openid, await this.#configuration(openid))
    } catch (error) {
      throw faultOf(error)
    } finally {
      this.#asking--
    }
  }

  /** openid-client caches the provider's keys for five minutes, and fetches them again if one is missing. */
  async #configuration(openid: Library): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const metadata = await this.#metadata.get(this.#metadataUrl)
    if (this.#made?.metadata === metadata) return this.#made.configuration
    const secret = clientSecret?.reveal()
    const methods = metadata.token_endpoint_auth_methods_supported
    const isPost = methods?.includes('client_secret_basic') === false
    const proof =
      secret === undefined
        ? openid.None()
        : isPost
          ? openid.ClientSecretPost(secret)
          : openid.ClientSecretBasic(secret)
    const configuration = new openid.Configuration(metadata, clientId, {}, proof)
    configuration[openid.customFetch] = (url, init) => this.#fetch(url, init)
    // Verify ID tokens by signature too, not only by the TLS connection they came over.
    openid.enableNonRepudiationChecks(configuration)
    if (issuer.startsWith('http:')) openid.allowInsecureRequests(configuration)
    this.#made = { metadata, configuration }
    return configuration
  }
}

type Library = typeof import('openid-client')

const KEYS = { name: 'keys', accept: 'application/jwk-set+json, application/json', parse: parseKeys } as const

/** Throws a Fault. */
function readMetadata(value: unknown, issuer: string): ServerMetadata {
  const read = metadataSchema.safeParse(value)
  if (!read.success) {
    const [{ path = [] } = {}] = read.error.issues
    throw new Fault('OPENID_METADATA', `its metadata is invalid (${path.join('.')})`)
  }
  // A host with several issuers must not answer for another one (OpenID Connect Discovery 1.0 §4.3).
  if (URL.parse(read.data.issuer)?.href !== issuer)
    throw new Fault('OPENID_METADATA', 'its metadata is that of another issuer')
  return read.data as ServerMetadata
}

function verifiedEmailIn(claims: Readonly<Record<string, unknown>>): string | null {
  const { email, email_verified } = claims
  return email_verified === true && typeof email === 'string' ? emailIn(email) : null
}

/** Whether a claim is at another place (OpenID Connect Core 1.0 §5.6.2), like groups of Microsoft Entra ID if there are many. */
function isElsewhere(name: string, { _claim_names: names }: Readonly<Record<string, unknown>>): boolean {
  return typeof names === 'object' && names !== null && Object.hasOwn(names, name)
}

/** The values of a claim: a text or a list of texts. Anything else has none. Throws an OpenidFault. */
function valuesOf(name: string, claim: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  if (values.length > VALUES_MAX)
    throw new OpenidFault('wrong', `its claim "${name}" has ${values.length} values: ${SEND_FEWER}`)
  return values.filter((each) => typeof each === 'string')
}

/** Responses of the provider can contain any text, so messages name only the kind of error. */
function faultOf(error: unknown): unknown {
  if (error instanceof OpenidFault) return error
  if (error instanceof DocumentUnusable)
    return new OpenidFault(error.kind === 'wrong' ? 'wrong' : 'away', error.message)
  const { name, code, cause, status, error: said } = error as OAuthFailure
  if (name === 'AuthorizationResponseError')
    return new OpenidFault(said === 'access_denied' ? 'denied' : 'wrong', `it returned ${wordIn(said)}`)
  if (cause instanceof FetchFault) {
    const isAway = cause.reason === 'timeout' || cause.reason === 'network'
    return new OpenidFault(isAway ? 'away' : 'wrong', cause.message)
  }
  const answered = status ?? (cause instanceof Response ? cause.status : null)
  if (answered !== null && answered >= 500)
    return new OpenidFault('away', `it answered with status ${answered}`)
  if (said !== undefined) return new OpenidFault('wrong', `it answered with ${wordIn(said)}`)
  if (code !== undefined) return new OpenidFault('wrong', `its response is invalid (${code})`)
  return error
}

/** The common members of openid-client's errors. */
interface OAuthFailure {
  readonly name: string
  readonly code?: string
  readonly cause?: unknown
  readonly status?: number
  readonly error?: unknown
}

function wordIn(said: unknown): string {
  return typeof said === 'string' && WORD.test(said) ? said : 'an error'
}

const metadataSchema = z.looseObject({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  jwks_uri: z.string(),
  userinfo_endpoint: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  id_token_signing_alg_values_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})
const WORD = /^\w{1,64}$/
/** Without all values, a person could have the role of another entry. */
const VALUES_MAX = 10_000
const SEND_FEWER = 'set it to send only the values of auth.openid.roles'
const TIMEOUT_MS = 5_000
/** Room for keys with their certificates, and for two tokens with thousands of groups. */
const ANSWER_BYTES_MAX = 1_048_576
/** Each takes a few seconds at most. */
const ASKING_MAX = 64
/** Makes providers send `auth_time`; this server checks how long ago it may be. */
const FRESH_S = '600'
