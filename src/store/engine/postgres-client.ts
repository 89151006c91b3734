import pg from 'pg'
import type { StoreLogin } from './store-login.ts'

/**
 * Clients that log in with what `login` says when each is made. To pg, a URL without a password has an empty one, which
 * wins over the setting beside the URL: so the password is put into the client.
 */
export function clientOf(login: StoreLogin | null): typeof pg.Client {
  return class extends pg.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config)
      if (login !== null && login.password !== null) this.password = login.password
    }
  }
}
