import type { Migration } from '../migration.ts'

export const tasks: Migration = async (_db, _types) => undefined
