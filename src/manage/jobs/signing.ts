import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Webhook } from 'standardwebhooks'
import type { DueEvent } from '../../store/events/deliveries.ts'
import type { WebhookSecret } from '../../store/events/webhooks.ts'
import type { Sealer } from '../auth/sealer.ts'

/** The body of a delivery: the same bytes at every attempt and in every process. */
export function bodyOf({ type, atMs, data }: Omit<DueEvent, 'id'>): string {
  return `{"type":${JSON.stringify(type)},"timestamp":"${new Date(atMs).toISOString()}","data":${data}}`
}

/** The headers of Standard Webhooks. */
export function signedHeaders(
  id: string,
  body: string,
  signers: readonly Webhook[],
  nowMs: number,
): Readonly<Record<string, string>> {
  const at = new Date(nowMs)
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(nowMs / 1000)),
    'webhook-signature': signers.map((signer) => signer.sign(id, at, body)).join(' '),
  }
}

/** The format of Standard Webhooks: 24 to 64 random bytes in base64. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** Signs deliveries with the stored secrets. */
export class Signing {
  readonly #sealer: Sealer
  /** Decrypted secrets, by id. The secret of an id never changes. */
  readonly #opened = new LRUCache<string, Webhook>({ max: OPENED_MAX })

  constructor(sealer: Sealer) {
    this.#sealer = sealer
  }

  /** The headers of an attempt, with a signature per secret. Throws a Fault if one cannot be decrypted. */
  async headers(
    eventId: string,
    body: string,
    secrets: readonly WebhookSecret[],
    nowMs: number,
  ): Promise<Readonly<Record<string, string>>> {
    const signers = await Promise.all(secrets.map((secret) => this.#signer(secret)))
    return signedHeaders(eventId, body, signers, nowMs)
  }

  async #signer({ id, webhookId, sealed }: WebhookSecret): Promise<Webhook> {
    const known = this.#opened.get(id)
    if (known !== undefined) return known
    const secret = await this.#sealer.open(sealed, secretOf(webhookId, id))
    const signer = new Webhook(secret.reveal())
    this.#opened.set(id, signer)
    return signer
  }
}

/** The context under which a webhook's secret is sealed: see Sealer. */
export function secretOf(webhookId: string, secretId: string): string {
  return `webhook ${webhookId} secret ${secretId}`
}

const SECRET_BYTES = 32
const OPENED_MAX = 500
