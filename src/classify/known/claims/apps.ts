import type { Software } from '../software.ts'

/**
 * Apps of people: the views in which they show pages, and the clients by which they talk to servers. Some have
 * the name of an agent, because the servers of their vendor fetch feeds or previews, or a name like Tweetbot.
 */
export type AppPart = 'view' | 'client' | null

export function appPartIn(text: string): AppPart {
  if (!text.includes('mozilla/') && !text.startsWith('opera/')) return OWN_CLIENT.test(text) ? 'client' : null
  if (VIEW_MARKS.some((mark) => text.includes(mark))) return 'view'
  if (!text.includes('safari/') && !text.includes('chrome/') && APPLE_VIEW.test(text)) return 'view'
  return null
}

/** Whether the name may be that of an app. Monitors and crawlers run in the views of apps too, and remain agents. */
export function isAppsName({ category, purposes }: Software): boolean {
  return category === 'custom' && purposes.every((purpose) => purpose === 'preview')
}

/** A library of Apple's or Android's systems, a device behind the name of the app, or the word app behind one. */
const OWN_CLIENT =
  /\bcfnetwork\/|\bdalvik\/|\balamofire\/|\((?:[^()]{0,128}; ?)?(?:iphone|ipad|ipod|ios|android|linux; ?(?:u; ?)?android)\b|\b(?:ios|android)\/\d|\b(?:iphone|ipad|ios|android) app\b|^\w+\/\S+ \w+\/\S+ device\//
/** Of Electron, and of Android's web view since 5.0 and since 4.4. */
const VIEW_MARKS = [' electron/', '; wv)', ';wv)', ' version/4.0 chrome/']
const APPLE_VIEW =
  /\((?:iphone|ipad|ipod|macintosh)[^)]{0,128}\) applewebkit\/[\d.]+ \(khtml, like gecko\) \S/
