// Stint: durable tasks for C++ programs. This header is all that most programs need.
#pragma once

#include <stint/codec.h>
#include <stint/context.h>
#include <stint/engine.h>
#include <stint/ids.h>
#include <stint/info.h>
#include <stint/isolate.h>
#include <stint/log.h>
#include <stint/options.h>
#include <stint/outcome.h>
#include <stint/result.h>
#include <stint/run.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/transaction.h>
