import { type Adapter, type AdapterPayload, errors } from 'oidc-provider'
import type { OAuthRecord } from '../../../store/people/oauth-records.ts'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { Store } from '../../../store/store.ts'
import type { Sealer } from '../sealer.ts'
import type { Denials } from './denials.ts'
import { openedRecord, sealedAs } from './sealed-records.ts'

/** The dependencies of Records. */
export interface RecordKeeping {
  readonly store: Store
  readonly sealer: Sealer
  readonly denials: Denials
  nowMs(): number
}

/**
 * Stores what oidc-provider keeps: codes, refresh tokens, sessions, grants and replay marks. Most ids are
 * credentials, so the database has their digests, and every payload is sealed: a copy of the database alone
 * contains no credential.
 */
export class Records implements Adapter {
  readonly #kind: string
  readonly #keeping: RecordKeeping

  constructor(kind: string, keeping: RecordKeeping) {
    this.#kind = kind
    this.#keeping = keeping
  }

  async upsert(id: string, payload: AdapterPayload, expiresInS: number): Promise<void> {
    const { store, sealer, nowMs } = this.#keeping
    const { grantId, uid, userCode, clientId, accountId } = payload
    const key = this.#idOf(id)
    const record = {
      id: key,
      kind: this.#kind,
      sealed: await sealer.seal(JSON.stringify(payload), sealedAs(this.#kind, key)),
      grantId: grantId === undefined ? null : grantDigest(grantId),
      uid: uid === undefined ? null : digestOf(this.#kind, 'uid', uid),
      userCode: userCode === undefined ? null : digestOf(this.#kind, 'user code', userCode),
      clientId: clientId ?? null,
      personId: accountId ?? null,
      expiresAtMs: nowMs() + (expiresInS + TOLERANCE_S) * 1000,
    }
    if (this.#kind !== ONCE) return store.oauthRecords.put(record)
    if (!(await store.oauthRecords.putOnce(record, nowMs()))) throw new errors.InvalidGrant(REPLAY)
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    return this.#opened(await this.#keeping.store.oauthRecords.byId(this.#idOf(id)))
  }

  async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#opened(await this.#keeping.store.oauthRecords.byUid(digestOf(this.#kind, 'uid', uid)))
  }

  async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    const digest = digestOf(this.#kind, 'user code', userCode)
    return this.#opened(await this.#keeping.store.oauthRecords.byUserCode(digest))
  }

  /** Of several concurrent uses of a code or refresh token, one succeeds. Any other one revokes the grant. */
  async consume(id: string): Promise<void> {
    const { store, nowMs } = this.#keeping
    const key = this.#idOf(id)
    const before = await store.oauthRecords.byId(key)
    if (await store.oauthRecords.consume(key, nowMs())) return
    if (before?.grantId != null) await this.#revoke(before.grantId)
    throw new errors.InvalidGrant(REPLAY)
  }

  async destroy(id: string): Promise<void> {
    if (this.#kind === GRANT) await this.#revoke(grantDigest(id))
    else await this.#keeping.store.oauthRecords.remove(this.#idOf(id))
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#revoke(grantDigest(grantId))
  }

  /** Also removes the codes and refresh tokens of the grant, and denies its access tokens. */
  async #revoke(grantId: string): Promise<void> {
    const { store, denials } = this.#keeping
    await denials.add('grant', grantId, async (queries) => {
      await store.oauthRecords.removeGrant(grantId, queries)
      await store.oauthRecords.remove(grantId, queries)
    })
  }

  async #opened(record: OAuthRecord | null): Promise<AdapterPayload | undefined> {
    if (record === null || record.kind !== this.#kind) return undefined
    if (record.expiresAtMs <= this.#keeping.nowMs()) return undefined
    const payload = await openedRecord(record, this.#keeping.sealer)
    if (record.consumedAtMs === null) return payload
    return { ...payload, consumed: Math.floor(record.consumedAtMs / 1000) }
  }

  #idOf(id: string): string {
    return this.#kind === GRANT ? grantDigest(id) : digestOf(this.#kind, id)
  }
}

/** The id of a grant outside of oidc-provider: in the database and in access tokens. */
export function grantDigest(grantId: string): string {
  return digestOf(GRANT, grantId)
}

const GRANT = 'Grant'
const ONCE = 'ReplayDetection'
const REPLAY = 'this was already used'
/**
 * The clock tolerance of oidc-provider. Records live that much longer, so that it reports the expiry itself.
 */
const TOLERANCE_S = 15
