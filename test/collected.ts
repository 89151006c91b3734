import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Whether nothing refers to it any more, after a moment: what is under way may have an end. */
export async function isCollected(reference: WeakRef<object>): Promise<boolean> {
  for (let attempt = 0; attempt < 40; attempt++) {
    await wait(25)
    collect()
    if (reference.deref() === undefined) return true
  }
  return false
}
