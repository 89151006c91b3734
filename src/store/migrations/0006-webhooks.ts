import type { Migration } from '../migration.ts'

export const webhooks: Migration = async (_db, _types) => undefined
