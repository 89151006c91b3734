import { useRoute } from 'preact-iso'
import { Page } from '../../parts/page.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Audit } from './audit.tsx'
import { Clients } from './clients.tsx'
import { Grants } from './grants.tsx'
import { Keys } from './keys.tsx'
import { Limits } from './limits.tsx'
import { SigningKeys } from './signing-keys.tsx'
import { TrustEntries } from './trust.tsx'
import { Users } from './users.tsx'

/** Access rights and settings. */
export function Settings() {
  const { params } = useRoute()
  const { name, Tab } = TABS.find((tab) => tab.name === params['tab']) ?? TABS[0]
  return (
    <Page title="Settings" help="authentication">
      <Tabs
        label="Settings"
        current={name}
        tabs={TABS.map(({ name, title }) => ({ name, title, href: `/dashboard/settings/${name}` }))}
      />
      <Tab />
    </Page>
  )
}

const TABS = [
  { name: 'keys', title: 'API keys', Tab: Keys },
  { name: 'clients', title: 'Clients', Tab: Clients },
  { name: 'grants', title: 'Waiting grants', Tab: Grants },
  { name: 'trust', title: 'Trust', Tab: TrustEntries },
  { name: 'users', title: 'Users', Tab: Users },
  { name: 'signing-keys', title: 'Signing keys', Tab: SigningKeys },
  { name: 'limits', title: 'All settings', Tab: Limits },
  { name: 'audit', title: 'Audit log', Tab: Audit },
] as const
