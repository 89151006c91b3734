import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'tap'
import { ofFile } from './tap-of-file.ts'
import { measure } from './test-times.ts'

/**
 * Runs test files one after the other in this process, each as a test of its own. A process for each file would
 * load the same modules again.
 */
export async function runFiles(files: readonly string[]): Promise<void> {
  const url = new URL('tap-of-file.ts', import.meta.url).href
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'tap' ? { url, shortCircuit: true } : next(specifier, context),
  })
  for (const file of files) {
    await test(file, async (t) => {
      Object.assign(ofFile, { parent: t, count: 0 })
      t.teardown(measure(file))
      await import(pathToFileURL(resolve(file)).href)
      assert.ok(ofFile.count > 0, `${file} has no test`)
    })
  }
}
