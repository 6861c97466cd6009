//! From naga's module to a program: statements.

use super::{
    arithmetic,
    lower::{Body, Bound, Exit, Lowering},
    program::{AtomicStep, Lane, Mask, Op, Reach},
    shape::{Kind, Shape},
};
use naga::{
    AtomicFunction, Block, CollectiveOperation, Expression, GatherMode, Handle, Statement,
    SwitchCase, SwitchValue,
};
use std::rc::Rc;

impl<'a> Lowering<'a> {
    pub fn block(&mut self, body: &mut Body<'a>, block: &'a Block) -> Result<(), String> {
        for statement in block.iter() {
            self.statement(body, statement)?;
            // Nothing after it can be reached.
            if ends(statement) {
                break;
            }
        }
        Ok(())
    }

    fn statement(&mut self, body: &mut Body<'a>, statement: &'a Statement) -> Result<(), String> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let bound = self.expression(body, handle)?;
                    body.bound.insert(handle, bound);
                }
            }
            Statement::Block(block) => self.block(body, block)?,
            Statement::If {
                condition,
                accept,
                reject,
            } => self.branch(body, *condition, accept, reject)?,
            Statement::Switch { selector, cases } => self.switch(body, *selector, cases)?,
            Statement::Loop {
                body: turn,
                continuing,
                break_if,
            } => self.repeat(body, turn, continuing, *break_if)?,
            Statement::Break => {
                let exit = body.exits.last().ok_or("a break outside of a loop")?;
                self.emit(Op::Leave(exit.left));
            }
            Statement::Continue => {
                let mut exits = body.exits.iter().rev();
                let next = exits.find_map(|exit| exit.next);
                let (next, _) = next.ok_or("a continue outside of a loop")?;
                self.emit(Op::Leave(next));
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let from = self
                        .value(body, *value)?
                        .registers
                        .iter()
                        .copied()
                        .collect();
                    let to = body.result.clone();
                    self.emit(Op::Move { to, from });
                }
                self.emit(Op::Leave(body.returned));
            }
            Statement::ControlBarrier(_) => self.emit(Op::Barrier),
            // Memory is the same for all at any time.
            Statement::MemoryBarrier(_) => {}
            Statement::Store { pointer, value } => {
                let value = self.value(body, *value)?;
                let place = self.pointer(body, *pointer)?;
                self.store(&place, &value);
            }
            Statement::Atomic {
                pointer,
                fun,
                value,
                result,
            } => self.update(body, *pointer, *fun, (*value, *result))?,
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let place = self.pointer(body, *pointer)?;
                self.emit(Op::Barrier);
                let value = self.load(&place);
                self.emit(Op::Barrier);
                body.bound.insert(*result, Bound::Value(value));
            }
            Statement::Call {
                function,
                arguments,
                result,
            } => {
                let arguments = arguments.iter().map(|argument| self.bound(body, *argument));
                let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
                let module = self.module;
                let function = &module.functions[*function];
                let mut to: Box<[_]> = Box::default();
                if let (Some(result), Some(declared)) = (result, &function.result) {
                    let value = self.fresh(Shape::of(module, declared.ty)?);
                    to = value.registers.iter().copied().collect();
                    body.bound.insert(*result, Bound::Value(value));
                } else if let Some(declared) = &function.result {
                    // Nobody reads it.
                    let value = self.fresh(Shape::of(module, declared.ty)?);
                    to = value.registers.iter().copied().collect();
                }
                self.inline(function, arguments, to)?;
            }
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = predicate.map(|predicate| self.scalar(body, predicate));
                let predicate = predicate.transpose()?;
                let value = self.fresh(Rc::new(Shape::Vector(4, Kind::Unsigned)));
                self.emit(Op::Ballot {
                    to: value.registers[0],
                    predicate,
                });
                body.bound.insert(*result, Bound::Value(value));
            }
            Statement::SubgroupCollectiveOperation {
                op,
                collective_op,
                argument,
                result,
            } => {
                let argument = self.value(body, *argument)?;
                let (step, neutral) = arithmetic::reduction(*op, argument.shape.kind()?)?;
                let reach = match collective_op {
                    CollectiveOperation::Reduce => Reach::All,
                    CollectiveOperation::InclusiveScan => Reach::UpTo,
                    CollectiveOperation::ExclusiveScan => Reach::Before,
                };
                let value = self.fresh(argument.shape.clone());
                for (to, from) in value.registers.iter().zip(&*argument.registers) {
                    self.emit(Op::Reduce {
                        step,
                        neutral,
                        reach,
                        to: *to,
                        from: *from,
                    });
                }
                body.bound.insert(*result, Bound::Value(value));
            }
            Statement::SubgroupGather {
                mode,
                argument,
                result,
            } => {
                let argument = self.value(body, *argument)?;
                let lane = match mode {
                    GatherMode::BroadcastFirst => Lane::First,
                    GatherMode::Broadcast(lane) | GatherMode::Shuffle(lane) => {
                        Lane::At(self.scalar(body, *lane)?)
                    }
                    GatherMode::ShuffleDown(by) => Lane::After(self.scalar(body, *by)?),
                    GatherMode::ShuffleUp(by) => Lane::Before(self.scalar(body, *by)?),
                    GatherMode::ShuffleXor(by) => Lane::Flipped(self.scalar(body, *by)?),
                    other => return Err(format!("{other:?}")),
                };
                let value = self.fresh(argument.shape.clone());
                for (to, from) in value.registers.iter().zip(&*argument.registers) {
                    let (to, from) = (*to, *from);
                    self.emit(Op::Gather { lane, to, from });
                }
                body.bound.insert(*result, Bound::Value(value));
            }
            other => return Err(format!("the statement {other:?}")),
        }
        Ok(())
    }

    fn branch(
        &mut self,
        body: &mut Body<'a>,
        condition: Handle<Expression>,
        accept: &'a Block,
        reject: &'a Block,
    ) -> Result<(), String> {
        let condition = self.scalar(body, condition)?;
        let before = self.mask();
        self.emit(Op::Save(before));
        body.conditions += 1;
        for (block, wanted) in [(accept, true), (reject, false)] {
            if block.is_empty() {
                continue;
            }
            let skip = self.label();
            self.emit(Op::Keep(condition, wanted));
            self.emit(Op::JumpIfNone(skip));
            self.block(body, block)?;
            self.place_label(skip);
            self.restore(body, before);
        }
        body.conditions -= 1;
        // If no lane comes back, what follows is skipped. Within a condition, other lanes wait for
        // the end of the condition.
        if body.conditions == 0 && (block_exits(accept) || block_exits(reject)) {
            let next = body.exits.last().and_then(|exit| exit.next);
            let to = next.map_or(body.end, |(_, end)| end);
            self.emit(Op::JumpIfNone(to));
        }
        Ok(())
    }

    /// The lanes of `before` are active, without those that left what is around the statement.
    fn restore(&mut self, body: &Body<'a>, before: Mask) {
        let mut without = vec![body.returned];
        for exit in body.exits.iter().rev() {
            without.push(exit.left);
            if let Some((next, _)) = exit.next {
                without.push(next);
                break;
            }
        }
        self.emit(Op::Restore {
            from: before,
            without: without.into(),
        });
    }

    fn repeat(
        &mut self,
        body: &mut Body<'a>,
        turn: &'a Block,
        continuing: &'a Block,
        break_if: Option<Handle<Expression>>,
    ) -> Result<(), String> {
        let (before, left, next) = (self.mask(), self.mask(), self.mask());
        let (top, turned, end) = (self.label(), self.label(), self.label());
        self.emit(Op::Save(before));
        self.emit(Op::Clear(left));
        self.place_label(top);
        self.emit(Op::Clear(next));
        body.exits.push(Exit {
            left,
            next: Some((next, turned)),
        });
        let conditions = core::mem::take(&mut body.conditions);
        self.block(body, turn)?;
        self.place_label(turned);
        self.emit(Op::Restore {
            from: before,
            without: [left, body.returned].into(),
        });
        self.emit(Op::JumpIfNone(end));
        self.emit(Op::Clear(next));
        self.block(body, continuing)?;
        if let Some(condition) = break_if {
            let condition = self.scalar(body, condition)?;
            self.emit(Op::LeaveIf(condition, left));
            self.emit(Op::JumpIfNone(end));
        }
        self.emit(Op::Jump(top));
        self.place_label(end);
        body.exits.pop();
        body.conditions = conditions;
        self.restore(body, before);
        Ok(())
    }

    fn switch(
        &mut self,
        body: &mut Body<'a>,
        selector: Handle<Expression>,
        cases: &'a [SwitchCase],
    ) -> Result<(), String> {
        let selector = self.scalar(body, selector)?;
        let (before, left) = (self.mask(), self.mask());
        self.emit(Op::Save(before));
        self.emit(Op::Clear(left));
        let value = |case: &SwitchCase| match case.value {
            SwitchValue::I32(value) => Some(value.cast_unsigned()),
            SwitchValue::U32(value) => Some(value),
            SwitchValue::Default => None,
        };
        let all: Box<[u32]> = cases.iter().filter_map(value).collect();
        body.exits.push(Exit { left, next: None });
        body.conditions += 1;
        // A case falls through to the next one only if it has no statements.
        for group in cases.split_inclusive(|case| !case.fall_through) {
            let (Some(last), values) = (group.last(), group.iter().map(value)) else {
                continue;
            };
            let values: Vec<_> = values.collect();
            let skip = self.label();
            self.restore(body, before);
            self.emit(Op::KeepCase {
                selector,
                any_of: values.iter().copied().flatten().collect(),
                none_of: values.contains(&None).then(|| all.clone()),
            });
            self.emit(Op::JumpIfNone(skip));
            self.block(body, &last.body)?;
            self.place_label(skip);
        }
        body.exits.pop();
        body.conditions -= 1;
        self.restore(body, before);
        Ok(())
    }

    fn update(
        &mut self,
        body: &mut Body<'a>,
        pointer: Handle<Expression>,
        function: AtomicFunction,
        (value, result): (Handle<Expression>, Option<Handle<Expression>>),
    ) -> Result<(), String> {
        let value = self.value(body, value)?;
        let kind = value.shape.kind()?;
        let (step, shape) = match function {
            AtomicFunction::Exchange { compare: Some(old) } => {
                // What was there, and whether it was exchanged.
                let members = vec![
                    (0, Rc::new(Shape::Scalar(kind))),
                    (1, Rc::new(Shape::Scalar(Kind::Bool))),
                ];
                let old = self.scalar(body, old)?;
                (AtomicStep::CompareExchange(old), Shape::Struct { members })
            }
            _ => {
                let step = AtomicStep::Update(arithmetic::atomic(function, kind));
                (step, Shape::Scalar(kind))
            }
        };
        let to = self.fresh(Rc::new(shape));
        let op = Op::Atomic {
            at: self.pointer(body, pointer)?.address,
            step,
            value: value.registers[0],
            result: Some(to.registers[0]),
        };
        self.emit(op);
        if let Some(result) = result {
            body.bound.insert(result, Bound::Value(to));
        }
        Ok(())
    }
}

/// Whether nothing after the statement runs.
fn ends(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Break | Statement::Continue | Statement::Return { .. }
    )
}

fn block_exits(block: &Block) -> bool {
    block.last().is_some_and(ends)
}
