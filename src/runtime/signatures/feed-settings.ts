import type { StartupConfig } from '../../config/config.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { Fault } from '../../shared/fault.ts'
import type { FeedSettings } from '../../manage/publish/feed-puller.ts'
import { parseFeedKey } from '../../plane/feed.ts'

export function feedSettings({ feeds }: StartupConfig): readonly FeedSettings[] {
  return feeds.map(({ publicKeys, ...settings }) => ({ ...settings, keys: publicKeys.map(parseFeedKey) }))
}

export function feedCalled(feeds: readonly FeedSettings[], name: string): FeedSettings {
  const found = feeds.find((feed) => feed.name === name)
  if (found !== undefined) return found
  const near = didYouMean(
    name,
    feeds.map((feed) => feed.name),
  )
  throw new Fault('FEED_UNKNOWN', `no feed of the configuration is called "${name}"${near}`)
}
