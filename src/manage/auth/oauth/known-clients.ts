import type { OAuthClient, OAuthClientStore } from '../../../store/people/oauth-clients.ts'
import { DASHBOARD_PATH } from '../../http/dashboard-path.ts'
import { SCOPES } from '../../http/access/principal.ts'

/** Where clients are found that are known by an id. */
export type KnownClients = Pick<OAuthClientStore, 'byId'>

/** Those in the database, and the dashboard, which nobody has to make: it has what who signs in with it has. */
export function withDashboard(clients: KnownClients, publicUrl: string): KnownClients {
  const dashboard: OAuthClient = {
    ...{ id: DASHBOARD_CLIENT, name: 'Dashboard', origin: 'administrator', plan: 'unlimited' },
    ...{ secretHash: null, authMethod: 'none', jwks: null, createdAtMs: 0 },
    grantTypes: ['authorization_code', 'refresh_token'],
    redirectUris: [publicUrl + DASHBOARD_PATH],
    scopes: SCOPES,
  }
  return { byId: async (id) => (id === DASHBOARD_CLIENT ? dashboard : clients.byId(id)) }
}

/** No client in the database has such an id: theirs begin with `cli_`. */
const DASHBOARD_CLIENT = 'dashboard'
