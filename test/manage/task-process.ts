import { Store } from '../../src/store/store.ts'
import { slowManagement, slowTypes } from './slow-tasks.ts'
import { TaskRunner } from '../../src/manage/jobs/task-runner.ts'

// A process that works on tasks until it is killed.
const store = await Store.open(process.argv[2]!)
const runner = new TaskRunner(slowTypes(5), slowManagement(store))
await runner.start()
setInterval(() => undefined, 1000)
