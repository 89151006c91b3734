import type { Kysely, Selectable } from 'kysely'
import type { Queries } from './database.ts'
import { type Page, type PageOf, pageOf } from './page.ts'
import { storedObject, storedTexts } from './stored.ts'
import type { OAuthClientTable } from './tables/oauth.ts'
import type { Tables } from './tables.ts'

/** A client of the authorization server, less its secret. */
export interface OAuthClient {
  readonly id: string
  readonly name: string
  /** SHA-256 of it, in hexadecimal; `null`: it has none. */
  readonly secretHash: string | null
  readonly authMethod: string
  readonly grantTypes: readonly string[]
  readonly redirectUris: readonly string[]
  readonly scopes: readonly string[]
  /** A JWK Set. */
  readonly jwks: Readonly<Record<string, unknown>> | null
  readonly plan: string
  /** `registration`: it came by itself. */
  readonly origin: string
  readonly createdAtMs: number
}

export class OAuthClientStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async add(client: OAuthClient, queries: Queries): Promise<void> {
    const { id, name, plan, origin } = client
    await queries
      .insertInto('oauth_clients')
      .values({
        ...{ id, name, plan, origin },
        secret_hash: client.secretHash,
        auth_method: client.authMethod,
        grant_types: JSON.stringify(client.grantTypes),
        redirect_uris: JSON.stringify(client.redirectUris),
        scopes: JSON.stringify(client.scopes),
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

  /** Newest first. */
  async list(page: Page): Promise<PageOf<OAuthClient>> {
    const found = this.#db.selectFrom('oauth_clients')
    return pageOf(found, found.selectAll().orderBy('created_at_ms', 'desc').orderBy('id'), page, client)
  }

  async count(origin: string): Promise<number> {
    const { total } = await this.#db
      .selectFrom('oauth_clients')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('origin', '=', origin)
      .executeTakeFirstOrThrow()
    return Number(total)
  }

  /** `false`: it is not there any more. */
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
    ...{ id, name, plan, origin },
    secretHash: row.secret_hash,
    authMethod: row.auth_method,
    grantTypes: storedTexts(row.grant_types),
    redirectUris: storedTexts(row.redirect_uris),
    scopes: storedTexts(row.scopes),
    jwks: row.jwks === null ? null : storedObject(row.jwks),
    createdAtMs: row.created_at_ms,
  }
}
