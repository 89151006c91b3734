import { AsyncLocalStorage, AsyncResource, executionAsyncResource } from 'node:async_hooks'

/**
 * What tap gets when it imports the package async-hook-domain: see lean-tap.cjs. It finds the test that an error
 * belongs to when nothing catches it. The package has Node report every promise to it for that, and watch when each is
 * collected. An AsyncLocalStorage costs nothing of the kind.
 */
export class Domain {
  readonly onerror: (error: unknown, type: string) => void
  readonly parent: Domain | null
  isDestroyed = false

  /** tap makes one inside of an AsyncResource, through which it runs all code of the test. */
  constructor(onerror: (error: unknown, type: string) => void) {
    this.onerror = onerror
    this.parent = current.getStore() ?? outermost
    const resource = executionAsyncResource()
    if (resource instanceof AsyncResource) this.#holdIn(resource)
    if (outermost === null) catchErrors()
    outermost ??= this
  }

  destroy(): void {
    this.isDestroyed = true
  }

  #holdIn(resource: AsyncResource): void {
    const run = resource.runInAsyncScope.bind(resource)
    resource.runInAsyncScope = (work, self, ...args) =>
      run(() => current.run(this, () => Reflect.apply(work, self, args)))
  }
}

function catchErrors(): void {
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    const isOthers =
      process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0
    if (isOthers || !tell(error, origin)) return
    // Node would end the process next.
    process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
  })
  const emit = process.emit
  // A listener would make Node take every rejection for handled.
  process.emit = (event: string, ...args: unknown[]) =>
    event === 'unhandledRejection' && process.listenerCount(event) === 0
      ? tell(args[0], event)
      : Reflect.apply(emit, process, [event, ...args])
}

/** Whether there is a test that wants to know. */
function tell(error: unknown, type: string): boolean {
  let domain = current.getStore() ?? outermost
  while (domain?.isDestroyed === true) domain = domain.parent
  domain?.onerror(error, type)
  return domain !== null
}

const current = new AsyncLocalStorage<Domain>()
let outermost: Domain | null = null
