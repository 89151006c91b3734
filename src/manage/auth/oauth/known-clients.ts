import { ALL_APPS } from '../../../apps/app-scope.ts'
import type { OAuthClient, OAuthClientStore } from '../../../store/people/oauth-clients.ts'
import { DASHBOARD_PATH } from '../../http/dashboard-path.ts'
import { SCOPES } from '../../http/access/principal.ts'

/** Looks up clients by id. */
export type KnownClients = Pick<OAuthClientStore, 'byId'>

/**
 * Adds the built-in dashboard client to those in the database. It gets the scopes of the signed-in person.
 */
export function withDashboard(clients: KnownClients, publicUrl: string): KnownClients {
  const dashboard: OAuthClient = {
    id: DASHBOARD_CLIENT,
    name: 'Dashboard',
    origin: 'administrator',
    plan: 'unlimited',
    secretHash: null,
    authMethod: 'none',
    jwks: null,
    createdAtMs: 0,
    grantTypes: ['authorization_code', 'refresh_token'],
    redirectUris: [publicUrl + DASHBOARD_PATH],
    scopes: SCOPES,
    apps: ALL_APPS,
  }
  return { byId: async (id) => (id === DASHBOARD_CLIENT ? dashboard : clients.byId(id)) }
}

/** Cannot collide with ids in the database: those begin with `cli_`. */
const DASHBOARD_CLIENT = 'dashboard'
