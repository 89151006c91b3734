export interface GuideLink {
  readonly topic: string
  /** Of a heading; empty for the beginning of the page. */
  readonly anchor: string
}

/** Where a link of a page of the manual leads: `policy.md#rules`. `null`: not to a page of the manual. */
export function guideLink(href: string): GuideLink | null {
  const [path, anchor = ''] = href.split('#') as [string, string?]
  const topic = LISTS.get(path) ?? GUIDE_PAGE.exec(path)?.[1]
  return topic === undefined ? null : { topic, anchor }
}

const LISTS: ReadonlyMap<string, string> = new Map([
  ['../README.md', 'settings'],
  ['../METRICS.md', 'metrics'],
  ['METRICS.md', 'metrics'],
])
/** Seen from config/guide/, or from config/. README.md is the list of the pages. */
const GUIDE_PAGE = /^(?:guide\/)?(?!README)([\w-]+)\.md$/
