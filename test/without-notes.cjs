const { enableCompileCache } = require('node:module')
const { resolve } = require('node:path')

// For coverage, tap writes down every file that a test and its children load, and has their source maps read. That is
// half of what it takes to start one, and nobody asks for it (see .taprc): this is what it leaves out, which is all.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/(?:)/'
delete process.env.NODE_OPTIONS // has the children do the same
// Each test file is a process, and starts more: what one has compiled, the others need not compile again.
process.env.NODE_COMPILE_CACHE ??= resolve('.tap/compiled')
enableCompileCache(process.env.NODE_COMPILE_CACHE)
