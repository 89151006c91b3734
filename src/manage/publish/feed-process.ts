import { constants, setPriority } from 'node:os'
import { FeedFault, openFeed, parseFeedKey } from '../../plane/feed.ts'
import type { FeedAnswer, FeedWork } from './feed-opener.ts'

// The helper process that FeedOpener starts. It opens one feed and exits.

function answerTo({ envelope, name, keys }: FeedWork): FeedAnswer {
  try {
    const { version, createdMs, expiresMs, payload } = openFeed(envelope, name, keys.map(parseFeedKey))
    return { kind: 'feed', feed: { name, version, createdMs, expiresMs, payload } }
  } catch (error) {
    if (!(error instanceof FeedFault)) throw error
    return { kind: 'fault', reason: error.reason, message: error.message }
  }
}

// A terminal's interrupt reaches every process of the group. This one ignores it and exits with its parent.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.once('disconnect', () => process.exit())
process.once('message', (work: FeedWork) => {
  process.send!(answerTo(work), () => process.disconnect())
})
// Requests take priority on machines with few processors.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
