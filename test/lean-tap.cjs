const { enableCompileCache, registerHooks } = require('node:module')
const { resolve } = require('node:path')
const { pathToFileURL } = require('node:url')

// tap loads this before each test file. It leaves out what takes up to a third of the time of a test file.

// For coverage, tap writes down every file that a test and its children load, and reads their source maps. No run asks
// for coverage (see .taprc), and Node itself keeps the lines of TypeScript.
process.setSourceMapsEnabled(false)
delete process.env.NODE_OPTIONS // it has the children do the same
const domains = pathToFileURL(resolve(__dirname, 'tap-domains.ts')).href
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'async-hook-domain') return { url: domains, shortCircuit: true }
    if (specifier.endsWith('/processinfo/dist/esm/import.mjs'))
      return { url: 'data:text/javascript,', shortCircuit: true }
    return next(specifier, context)
  },
})

// Each test file is a process, and starts more: what one has compiled, the others need not compile again.
process.env.NODE_COMPILE_CACHE ??= resolve('.tap/compiled')
enableCompileCache(process.env.NODE_COMPILE_CACHE)

// Times of test files: see test/README.md.
if (process.env.TEST_TIMES !== undefined) require('./groups/test-times.ts').measureProcess()
