import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { openDashboard } from './browser.ts'
import { Steps, TASKS } from './tasks.ts'

const skip = skipped('chromium')
const WIDE = { width: 1_440, height: 900 }

for (const task of TASKS)
  test(task.name, { skip }, async (t) => {
    const { url: hook } = await HookReceiver.start(t)
    const place = { isEmpty: true, crawled: 20, hook }
    const { manage, page } = await openDashboard(t, {
      knows: true,
      allowPrivateWebhooks: true,
      browser: { viewport: WIDE },
    })
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await manage.take(task.requests(place))
    await task.prepare?.(manage, place)
    const steps = new Steps(page)
    await task.run({ manage, page, steps, place })
    assert.ok(steps.count <= task.stepsMax, `${steps.count} steps`)
  })
