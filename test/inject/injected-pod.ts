import type { IPod } from 'kubernetes-models/v1/Pod'
import type { Test } from 'tap'
import { freePort } from '../e2e/ports.ts'
import { echoApp } from '../e2e/fleet.ts'
import { again, answerTo, podAfter, REVIEWS, sidecarSettings } from './reviews.ts'

/** The Pod of a plain Deployment in front of a running app, as the webhook answers for it. */
export async function injectedPod(t: Test, settings: Parameters<typeof sidecarSettings>[0]): Promise<IPod> {
  const app = await echoApp(t)
  const review = REVIEWS.get('deployment')!
  const pod = JSON.parse(review).request.object
  pod.metadata.annotations = {
    'gatehouse.dev/upstream-port': new URL(app.url).port,
    'gatehouse.dev/listen-port': String(await freePort()),
    'gatehouse.dev/manage-port': String(await freePort()),
  }
  const text = again(review, pod)
  return podAfter(text, answerTo(text, sidecarSettings(settings)))
}
