import type { Kysely, Selectable } from 'kysely'
import type { AppList, AppScope } from '../../apps/app-scope.ts'
import { rowIsWithin, storedApps } from '../engine/app-lists.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { OAuthClientTable } from '../engine/tables/oauth.ts'
import type { Tables } from '../engine/tables.ts'

/** A client of the authorization server, without its secret. */
export interface OAuthClient {
  readonly id: string
  readonly name: string
  /** SHA-256 of the secret, in hexadecimal; `null`: it has no secret. */
  readonly secretHash: string | null
  readonly authMethod: string
  readonly grantTypes: readonly string[]
  readonly redirectUris: readonly string[]
  readonly scopes: readonly string[]
  /** The apps whose objects it may see. */
  readonly apps: AppList
  /** A JWK Set. */
  readonly jwks: Readonly<Record<string, unknown>> | null
  readonly plan: string
  /** `registration`: it registered itself. */
  readonly origin: string
  readonly createdAtMs: number
}

export class OAuthClientStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  async add(client: OAuthClient, queries: Queries): Promise<void> {
    const { id, name, plan, origin } = client
    await queries
      .insertInto('oauth_clients')
      .values({
        id,
        name,
        plan,
        origin,
        secret_hash: client.secretHash,
        auth_method: client.authMethod,
        grant_types: JSON.stringify(client.grantTypes),
        redirect_uris: JSON.stringify(client.redirectUris),
        scopes: JSON.stringify(client.scopes),
        apps: JSON.stringify(client.apps),
        jwks: client.jwks === null ? null : JSON.stringify(client.jwks),
        created_at_ms: client.createdAtMs,
      })
      .execute()
  }

  async byId(id: string): Promise<OAuthClient | null> {
    const found = this.#db.selectFrom('oauth_clients').selectAll().where('id', '=', id)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : client(row)
  }

  /** Those within the apps, newest first. */
  async list<Asked extends Part>(part: Asked, apps: AppScope): Promise<PartOf<OAuthClient, Asked>> {
    const isVisible = rowIsWithin(this.#kind, 'oauth_clients.apps', apps)
    const found = this.#db.selectFrom('oauth_clients').where(isVisible)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, client)
  }

  /** For a limit: others that count wait until this transaction has added its own. */
  async countOf(origin: string, queries: Queries): Promise<number> {
    await lockUntilCommit(queries, this.#kind, 'oauthClients')
    const { total } = await queries
      .selectFrom('oauth_clients')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('origin', '=', origin)
      .executeTakeFirstOrThrow()
    return Number(total)
  }

  /**
   * Deletes clients that registered themselves before `beforeMs` and have no
   * stored consent. At most `rowsMax`.
   */
  async forgetUnused(beforeMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('oauth_clients')
      .where('id', 'in', (eb) =>
        eb
          .selectFrom('oauth_clients')
          .select('id')
          .where('origin', '=', 'registration')
          .where('created_at_ms', '<', beforeMs)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('oauth_records')
                  .select('oauth_records.id')
                  .whereRef('oauth_records.client_id', '=', 'oauth_clients.id'),
              ),
            ),
          )
          .limit(rowsMax),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  /** `false`: it does not exist any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries
      .deleteFrom('oauth_clients')
      .where('id', '=', id)
      .executeTakeFirst()
    return numDeletedRows > 0n
  }
}

function client(row: Selectable<OAuthClientTable>): OAuthClient {
  const { id, name, plan, origin } = row
  return {
    id,
    name,
    plan,
    origin,
    secretHash: row.secret_hash,
    authMethod: row.auth_method,
    grantTypes: storedTexts(row.grant_types),
    redirectUris: storedTexts(row.redirect_uris),
    scopes: storedTexts(row.scopes),
    apps: storedApps(row.apps),
    jwks: row.jwks === null ? null : storedObject(row.jwks),
    createdAtMs: row.created_at_ms,
  }
}

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'oauth_clients.created_at_ms', kind: 'whole' },
    { name: 'oauth_clients.id', kind: 'text' },
  ],
  isDescending: true,
}
