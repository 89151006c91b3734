import type { Migration } from '../migration.ts'

export const submissions: Migration = async (_db, _types) => undefined
