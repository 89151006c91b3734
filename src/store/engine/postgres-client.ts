import pg from 'pg'
import type { StoreLogin } from './store-login.ts'

/**
 * Clients that log in with the current credentials of `login`. If a URL has no password, pg parses it as an
 * empty one, which overrides the separate setting. Therefore this class sets the password on the client.
 */
export function clientOf(login: StoreLogin | null): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config)
      if (login !== null && login.password !== null) this.password = login.password
    }
  }
}
