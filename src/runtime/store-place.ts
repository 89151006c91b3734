import { join } from 'node:path'
import type { StartupConfig } from '../config/config.ts'
import { StoreLogin } from '../store/engine/store-login.ts'

/** Where the database is. */
export interface StorePlace {
  /** `sqlite:FILE` or `postgres://…`, without the password. */
  readonly storeUrl: string
  readonly storeLogin: StoreLogin
}

export function storePlace({ store, data }: StartupConfig): StorePlace {
  return {
    storeUrl: store.url ?? `sqlite:${join(data.dir, 'gatehouse.db')}`,
    storeLogin: new StoreLogin(store.password?.reveal() ?? null, store.password?.file ?? null),
  }
}
