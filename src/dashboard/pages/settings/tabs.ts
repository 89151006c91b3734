/** The tabs of the page Settings, in their order. */
export const SETTINGS_TABS = [
  { name: 'keys', title: 'API keys' },
  { name: 'clients', title: 'Clients' },
  { name: 'grants', title: 'Waiting grants' },
  { name: 'trust', title: 'Trust' },
  { name: 'users', title: 'Users' },
  { name: 'signing-keys', title: 'Signing keys' },
  { name: 'limits', title: 'All settings' },
  { name: 'audit', title: 'Audit log' },
] as const

export function settingsTabAt(name: string): string {
  return `/dashboard/settings/${name}`
}
