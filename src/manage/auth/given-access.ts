import type { OAuthRecord } from '../../store/people/oauth-records.ts'
import type { UserRecord } from '../../store/people/users.ts'
import { changed } from '../http/audit.ts'
import type { AuthContext } from './context.ts'
import { instanceIdOf } from './gnap/gnap-tokens.ts'
import { isDocumentUrl } from './oauth/client-documents.ts'
import type { From, GivenAccess, ProgramAccess } from './oauth/people.ts'
import { openedRecord } from './oauth/sealed-records.ts'
import { SCOPES } from '../http/access/principal.ts'

/** The access that people have given to programs: by consent (OAuth), or by approving a key (GNAP). */
export class AccessGiven implements GivenAccess {
  readonly #management: AuthContext

  constructor(management: AuthContext) {
    this.#management = management
  }

  async of(personId: string): Promise<readonly ProgramAccess[]> {
    return [...(await this.#clients(personId)), ...(await this.#keys(personId))]
  }

  /** Also ends every token issued from it, in all processes within a second. */
  async takeBack(
    { id: personId, apps }: Pick<UserRecord, 'id' | 'apps'>,
    id: string,
    from: From,
  ): Promise<boolean> {
    const { store, oauth, gnap, nowMs } = this.#management
    const change = { action: 'takeBackAccess', subject: id, apps, detail: {} }
    try {
      const grants = await changed(store, { id: personId, ...from }, change, nowMs(), async (queries) => {
        const ended = await store.oauthRecords.removePersonsClient(personId, id, queries)
        for (const grant of ended) await oauth.denials.addTo(queries, 'grant', grant)
        const thumbprint = id.slice(instanceIdOf('').length)
        const isKey = id === instanceIdOf(thumbprint)
        const keys = isKey ? await store.gnapTokens.revokeApproved(personId, thumbprint, nowMs(), queries) : 0
        if (ended.length + keys === 0) throw NOTHING
        return ended
      })
      for (const grant of grants) oauth.denials.learn('grant', grant)
      gnap.tokens.forget()
      return true
    } catch (error) {
      if (error === NOTHING) return false
      throw error
    }
  }

  /** One entry per client, no matter how many consents there are. */
  async #clients(personId: string): Promise<readonly ProgramAccess[]> {
    const { store, nowMs } = this.#management
    const records = await store.oauthRecords.grantsOf(personId, nowMs(), GIVEN_MAX)
    const found = new Map<string, ProgramAccess>()
    for (const record of records) {
      const id = record.clientId!
      const before = found.get(id)
      const { words, isOffline } = await this.#consented(record)
      found.set(id, {
        id,
        name: before?.name ?? (await this.#nameOf(id)),
        how: isDocumentUrl(id) ? 'document' : 'client',
        scopes: SCOPES.filter((scope) => words.includes(scope) || before?.scopes.includes(scope)),
        isOffline: isOffline || before?.isOffline === true,
        untilMs: Math.max(record.expiresAtMs, before?.untilMs ?? 0),
      })
    }
    return [...found.values()]
  }

  async #consented(record: OAuthRecord): Promise<{ words: readonly string[]; isOffline: boolean }> {
    const payload = (await openedRecord(record, this.#management.sealer)) as ConsentPayload
    const words = Object.values(payload.resources ?? {}).flatMap((scope) => scope.split(' '))
    return { words, isOffline: payload.openid?.scope?.split(' ').includes('offline_access') === true }
  }

  async #nameOf(clientId: string): Promise<string> {
    if (isDocumentUrl(clientId)) return new URL(clientId).host
    return (await this.#management.oauth.clients.byId(clientId))?.name ?? clientId
  }

  async #keys(personId: string): Promise<readonly ProgramAccess[]> {
    const { store, nowMs } = this.#management
    const found = new Map<string, ProgramAccess>()
    for (const token of await store.gnapTokens.approvedBy(personId, nowMs(), GIVEN_MAX)) {
      const id = instanceIdOf(token.thumbprint)
      const before = found.get(id)
      const scopes = SCOPES.filter((scope) => token.scopes.includes(scope) || before?.scopes.includes(scope))
      const untilMs = Math.max(token.endsAtMs, before?.untilMs ?? 0)
      found.set(id, { id, name: token.name, how: 'key', scopes, isOffline: true, untilMs })
    }
    return [...found.values()]
  }
}

/** The displayed part of a consent as oidc-provider stores it. */
interface ConsentPayload {
  readonly resources?: Readonly<Record<string, string>>
  readonly openid?: { readonly scope?: string }
}

const NOTHING = new Error('nothing to take back')
/** The limit for each kind; a longer list is not useful to a reader. */
const GIVEN_MAX = 200
