"""Functions that compiled loops call, written out in LLVM's language."""

__all__ = ["BUCKETS", "HELPERS", "REACH"]

BUCKETS = 2048
"""Parts into which the span of an axis is cut, to find a value among its lines in few steps."""

REACH = 2048
"""Places of a grid that one new vector changes, at most."""

_RANK = f"""
define internal i64 @rank(ptr %lines, ptr %buckets, i64 %first, i64 %shift, double %x) alwaysinline {{
entry:
  %bits = bitcast double %x to i64
  %sign = ashr i64 %bits, 63
  %flip = and i64 %sign, 9223372036854775807
  %key = xor i64 %bits, %flip
  %under = icmp slt i64 %key, %first
  %over = sub i64 %key, %first
  %part = lshr i64 %over, %shift
  %most = call i64 @llvm.umin.i64(i64 %part, i64 {BUCKETS - 1})
  %next = add i64 %most, 1
  %bucket = select i1 %under, i64 0, i64 %next
  %low.at = getelementptr i32, ptr %buckets, i64 %bucket
  %low.32 = load i32, ptr %low.at
  %low = zext i32 %low.32 to i64
  %high.at = getelementptr i32, ptr %low.at, i64 1
  %high.32 = load i32, ptr %high.at
  %high = zext i32 %high.32 to i64
  %between = sub i64 %high, %low
  %all = add i64 %between, 1
  br label %head
head:
  %base = phi i64 [ %low, %entry ], [ %base.next, %body ]
  %n = phi i64 [ %all, %entry ], [ %n.next, %body ]
  %more = icmp ugt i64 %n, 1
  br i1 %more, label %body, label %done
body:
  %half = lshr i64 %n, 1
  %middle = add i64 %base, %half
  %where = getelementptr double, ptr %lines, i64 %middle
  %line = load double, ptr %where
  %reached = fcmp ole double %line, %x
  %base.next = select i1 %reached, i64 %middle, i64 %base
  %n.next = sub i64 %n, %half
  br label %head
done:
  ret i64 %base
}}
"""
# How many lines, which start at index 1, are at most x. Doubles are in the order of their bits, seen as integers whose
# magnitude is flipped where the sign is set. The buckets say how many lines are at most the lower edge of each part.

_ABOVE = """
define internal double @above(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %zero = fcmp oeq double %x, 0.0
  %positive = fcmp ogt double %x, 0.0
  %step = select i1 %positive, i64 1, i64 -1
  %moved = add i64 %bits, %step
  %next = select i1 %zero, i64 1, i64 %moved
  %y = bitcast i64 %next to double
  ret double %y
}
"""
# The number after a finite x.

_LOWER = f"""
define internal void @lower(ptr %limits, ptr %exact, i64 %start, i64 %rows, i64 %width, i64 %from.0, i64 %from, double %cost) noinline {{
entry:
  %row.0 = mul i64 %start, %width
  br label %row
row:
  %i = phi i64 [ %start, %entry ], [ %i.next, %next ]
  %left = phi i64 [ {REACH}, %entry ], [ %left.row, %next ]
  %first = icmp eq i64 %i, %start
  %j.0 = select i1 %first, i64 %from.0, i64 %from
  %inside = icmp slt i64 %i, %rows
  br i1 %inside, label %begin, label %done
begin:
  %base = mul i64 %i, %width
  br label %cell
cell:
  %j = phi i64 [ %j.0, %begin ], [ %j.next, %change ]
  %left.cell = phi i64 [ %left, %begin ], [ %left.next, %change ]
  %on = icmp slt i64 %j, %width
  br i1 %on, label %look, label %next
look:
  %at = add i64 %base, %j
  %limit.at = getelementptr double, ptr %limits, i64 %at
  %limit = load atomic double, ptr %limit.at unordered, align 8
  %higher = fcmp ogt double %limit, %cost
  br i1 %higher, label %change, label %stop
change:
  store atomic double %cost, ptr %limit.at unordered, align 8
  %exact.at = getelementptr double, ptr %exact, i64 %at
  %known = load atomic double, ptr %exact.at unordered, align 8
  %less = fcmp olt double %cost, %known
  %best = select i1 %less, double %cost, double %known
  store atomic double %best, ptr %exact.at unordered, align 8
  %j.next = add i64 %j, 1
  %left.next = sub i64 %left.cell, 1
  %tired = icmp sle i64 %left.next, 0
  br i1 %tired, label %done, label %cell
stop:
  %untouched = icmp eq i64 %j, %j.0
  %later = xor i1 %first, true
  %over = and i1 %untouched, %later
  br i1 %over, label %done, label %next
next:
  %left.row = phi i64 [ %left.cell, %cell ], [ %left.cell, %stop ]
  %i.next = add i64 %i, 1
  br label %row
done:
  ret void
}}
"""
# Of a grid of rows x width places, no limit from row start on, from column from.0 in that row and from in the others,
# is above cost any more. A place whose limit is lower already says that all after it are; other threads may do the same.

HELPERS = _RANK + _ABOVE + _LOWER
"""``rank``: the line of a value on an axis. ``above``: the next number. ``lower``: what a new vector discards."""
