import { storeContract } from '../contract/store.ts'
import { openFresh } from './databases.ts'

storeContract('sqlite', (t) => openFresh('sqlite', t))
