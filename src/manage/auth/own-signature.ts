import { randomBytes } from 'node:crypto'
import { contentDigestOf, signAsAgent } from '../../identity/keys/request-signer.ts'
import type { SigningKeys } from '../../identity/keys/signing-key.ts'

export interface OwnSigning {
  /** The value of Signature-Agent: the location of our key directory. `null`: the public URL. */
  readonly agent: string | null
  /** Whether webhooks are signed. */
  readonly webhooks: boolean
  /** The file with the keys. `null`: a file in this process's data folder. */
  readonly keyFile?: string | null
  /** The current keys. `null`: no keys. */
  keys(): SigningKeys | null
}

/** The keys and settings with which this installation signs its own requests as an agent (Web Bot Auth). */
export class OwnSignature {
  readonly #signing: OwnSigning
  readonly #publicUrl: string
  readonly #nowMs: () => number

  constructor(signing: OwnSigning, publicUrl: string, nowMs: () => number) {
    this.#signing = signing
    this.#publicUrl = publicUrl
    this.#nowMs = nowMs
  }

  /** Headers to add to a webhook. The signature also covers those of `headers` that describe the content. */
  headersFor(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Readonly<Record<string, string>> {
    const keys = this.#signing.webhooks ? this.#signing.keys() : null
    const place = keys === null ? null : URL.parse(url)
    if (keys === null || place === null) return NOTHING
    const own = { 'content-digest': contentDigestOf(body) }
    const said = Object.entries({ ...headers, ...own }).filter(([name]) => COVERED.has(name))
    const createdS = Math.floor(this.#nowMs() / 1000)
    const signed = signAsAgent(
      { method: 'POST', base: place.origin, target: place.pathname + place.search, rawHeaders: said.flat() },
      {
        agent: this.agent,
        form: 'dictionary',
        createdS,
        expiresS: createdS + LIFE_S,
        nonce: randomBytes(NONCE_BYTES).toString('base64url'),
        components: [...PLACE, ...said.map(([name]) => name), 'signature-agent;key=sig1'],
      },
      keys[0],
    )
    const made: Record<string, string> = { ...own }
    for (let i = 0; i < signed.length; i += 2) made[signed[i]!.toLowerCase()] = signed[i + 1]!
    return made
  }

  get agent(): string {
    return this.#signing.agent ?? this.#publicUrl
  }

  get keys(): SigningKeys | null {
    return this.#signing.keys()
  }
}

const NOTHING: Readonly<Record<string, string>> = Object.freeze({})
const PLACE = ['@method', '@authority', '@path', '@query']
const COVERED: ReadonlySet<string> = new Set([
  ...['content-digest', 'content-type', 'webhook-id', 'webhook-timestamp'],
])
/** The tolerance for timestamps in Standard Webhooks. */
const LIFE_S = 300
const NONCE_BYTES = 24
