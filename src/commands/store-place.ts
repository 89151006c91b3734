import { join } from 'node:path'
import type { StartupConfig } from '../config.ts'

/** Where what lasts is. */
export interface StorePlace {
  /** `sqlite:FILE` or `postgres://…`, in which there is no password. */
  readonly storeUrl: string
  readonly storePassword: string | null
}

export function storePlace({ store, data }: StartupConfig): StorePlace {
  return {
    storeUrl: store.url ?? `sqlite:${join(data.dir, 'gatehouse.db')}`,
    storePassword: store.password?.reveal() ?? null,
  }
}
