import { parseAddressRange } from '../../wire/address-ranges.ts'
import type { App } from '../api/operations.ts'
import type { Topic } from '../pages/help/topic.ts'
import { SETTINGS_TABS, settingsTabAt } from '../pages/settings/tabs.ts'
import { requestAt, requestIdIn } from '../pages/traffic/request-id.ts'

/** Where the dialog “Go to” leads. */
export interface Destination {
  readonly title: string
  /** Tells it from others with the same title. */
  readonly about?: string
  readonly href: string
}

export interface DestinationGroup {
  readonly name: string
  readonly places: readonly Destination[]
}

export interface GoToSources {
  /** The pages that the user may open, with their addresses. */
  readonly pages: readonly Destination[]
  readonly topics: readonly Topic[]
  readonly apps: readonly App[]
  /** Those that the API found. */
  readonly agents: readonly Destination[]
}

/** The places for a text, the best first in each group. Without a text: the pages. Agents are last, because they come late. */
export function placesFor(
  text: string,
  { pages, topics, apps, agents }: GoToSources,
): readonly DestinationGroup[] {
  const words = wordsIn(text)
  if (words.length === 0) return groupsOf([['Pages', pages]])
  const may = (path: string) => pages.some(({ href }) => href.split('?', 1)[0] === path)
  const settings = may('/dashboard/settings') ? SETTINGS : []
  const ofSignatures = may('/dashboard/signatures') ? SIGNATURES : []
  return groupsOf([
    ['Traffic', may('/dashboard/traffic') ? pasted(text) : []],
    ['Pages', matching([...pages, ...ofSignatures], words)],
    ['Settings', matching(settings, words)],
    ['Apps', matching(apps.map(placeOfApp), words)],
    ['Manual', matching(topics.flatMap(placesOfTopic), words)],
    ['Agents', agents.slice(0, GROUP_MAX)],
  ])
}

/** What is pasted rather than typed: the id of a request, an address or a network. */
function pasted(text: string): readonly Destination[] {
  const id = requestIdIn(text)
  if (id !== null) return [{ title: `Request ${id}`, href: requestAt(id) }]
  const address = text.trim()
  if (parseAddressRange(address) === null) return []
  return [
    { title: `Requests from ${address}`, href: `/dashboard/traffic?${new URLSearchParams({ address })}` },
  ]
}

/** Those with all the words. A title that begins with the first word is better than one that contains it, and that than `about`. */
function matching(places: readonly Destination[], words: readonly string[]): readonly Destination[] {
  return places
    .map((place) => ({ place, score: scoreOf(place, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, GROUP_MAX)
    .map(({ place }) => place)
}

/** 0: a word is missing. */
function scoreOf({ title, about = '' }: Destination, words: readonly string[]): number {
  const [head, rest] = [title.toLowerCase(), about.toLowerCase()]
  if (!words.every((word) => head.includes(word) || rest.includes(word))) return 0
  return head.startsWith(words[0]!) ? 3 : words.every((word) => head.includes(word)) ? 2 : 1
}

function wordsIn(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
}

function groupsOf(groups: readonly (readonly [name: string, places: readonly Destination[]])[]) {
  return groups.filter(([, places]) => places.length > 0).map(([name, places]) => ({ name, places }))
}

function placeOfApp({ id, name }: App): Destination {
  return {
    title: name,
    ...(name !== id && { about: id }),
    href: `/dashboard?${new URLSearchParams({ app: id })}`,
  }
}

function placesOfTopic({ topic, title, headings }: Topic): readonly Destination[] {
  const href = `/dashboard/help/${topic}`
  return [
    { title, href },
    ...headings.map(({ text, anchor }) => ({ title: text, about: title, href: `${href}#${anchor}` })),
  ]
}

const SETTINGS: readonly Destination[] = SETTINGS_TABS.map(({ name, title }) => ({
  title,
  about: 'Settings',
  href: settingsTabAt(name),
}))
const SIGNATURES: readonly Destination[] = [
  ['Unknown signatures', 'unknown'],
  ['Submissions of signatures', 'submissions'],
  ['Map of TLS stacks', 'map'],
].map(([title, name]) => ({ title: title!, href: `/dashboard/signatures/${name}` }))
/** More of one kind are found with more letters. */
const GROUP_MAX = 6
