import type { Test, test as testOfTap } from 'tap'

/** What a file in a group gets when it imports the package tap: see run-files.ts. */
export const test: typeof testOfTap = (...args: unknown[]) => {
  ofFile.count++
  return Reflect.apply(ofFile.parent.test, ofFile.parent, args)
}

export const after: Test['after'] = (handler) => ofFile.parent.after(handler)

/** The test that stands for the file that runs now, and how many tests the file has begun. */
export const ofFile = { parent: undefined as unknown as Test, count: 0 }
