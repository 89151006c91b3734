import { join } from 'node:path'
import type { StartupConfig } from '../config/config.ts'
import { StoreLogin } from '../store/engine/store-login.ts'
import type { TrafficPlace } from '../store/traffic/clickhouse/clickhouse-sightings.ts'

/** Where the database is. */
export interface StorePlace {
  /** `sqlite:FILE` or `postgres://…`, without the password. */
  readonly storeUrl: string
  readonly storeLogin: StoreLogin
  /** Where recorded requests are; `null`: in the database. */
  readonly traffic: TrafficPlace | null
}

export function storePlace({ store, traffic, data }: StartupConfig): StorePlace {
  const { url, password } = traffic
  return {
    storeUrl: store.url ?? `sqlite:${join(data.dir, 'gatehouse.db')}`,
    storeLogin: new StoreLogin(store.password?.reveal() ?? null, store.password?.file ?? null),
    traffic:
      url === null
        ? null
        : { url, login: new StoreLogin(password?.reveal() ?? null, password?.file ?? null) },
  }
}
