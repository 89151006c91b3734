import { useAsked } from '../../api/use-asked.ts'
import { useChosen, withQuery } from '../../parts/chosen/app.ts'
import { Tabs } from '../../parts/tabs.tsx'

/** Campaigns are those of all apps together. */
export function ThreatTabs({ current }: { readonly current: string }) {
  const { answer: me } = useAsked('getMe', {})
  const chosen = useChosen()
  const tabs = [
    { name: 'open', title: 'Open', href: withQuery('/dashboard/threats', { ...chosen }) },
    ...CLOSED.map(({ name, title }) => ({
      ...{ name, title },
      href: withQuery('/dashboard/threats', { status: name, ...chosen }),
    })),
    ...(me?.apps === '*'
      ? [{ name: 'campaigns', title: 'Campaigns', href: '/dashboard/threats/campaigns' }]
      : []),
  ]
  return <Tabs label="Threats" current={current} tabs={tabs} />
}

const CLOSED = [
  { name: 'accepted', title: 'Accepted' },
  { name: 'false_alarm', title: 'False alarms' },
]
