import { Tabs } from '../../parts/tabs.tsx'

export function SignatureTabs({ current }: { readonly current: string }) {
  return <Tabs label="Signatures" current={current} tabs={TABS} />
}

const TABS = [
  { name: 'all', title: 'All', href: '/dashboard/signatures' },
  { name: 'unknown', title: 'Unknown', href: '/dashboard/signatures/unknown' },
  { name: 'submissions', title: 'Submissions', href: '/dashboard/signatures/submissions' },
  { name: 'map', title: 'Map', href: '/dashboard/signatures/map' },
]
