import type { FunctionComponent } from 'preact'
import { useRoute } from 'preact-iso'
import { Page } from '../../parts/page.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Audit } from './audit.tsx'
import { Clients } from './clients.tsx'
import { Grants } from './grants.tsx'
import { Keys } from './keys.tsx'
import { Limits } from './limits.tsx'
import { SigningKeys } from './signing-keys.tsx'
import { SETTINGS_TABS, settingsTabAt } from './tabs.ts'
import { TrustEntries } from './trust.tsx'
import { Users } from './users.tsx'

/** Access rights and settings. */
export function Settings() {
  const { params } = useRoute()
  const { name } = SETTINGS_TABS.find((tab) => tab.name === params['tab']) ?? SETTINGS_TABS[0]
  const Tab = TABS[name]
  return (
    <Page title="Settings" help="authentication">
      <Tabs
        label="Settings"
        current={name}
        tabs={SETTINGS_TABS.map((tab) => ({ ...tab, href: settingsTabAt(tab.name) }))}
      />
      <Tab />
    </Page>
  )
}

const TABS = {
  keys: Keys,
  clients: Clients,
  grants: Grants,
  trust: TrustEntries,
  users: Users,
  'signing-keys': SigningKeys,
  limits: Limits,
  audit: Audit,
} as const satisfies Readonly<Record<(typeof SETTINGS_TABS)[number]['name'], FunctionComponent>>
