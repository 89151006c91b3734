export type SettingTables = Record<never, never>
